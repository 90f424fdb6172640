// Package history compares two versions of a robots.txt: [Diff] their lines, [Compare] their
// decisions, and [CompareUsage] what they state about the use of content. [CompareTDMRep] does the latter
// for two versions of a tdmrep.json.
package history

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"robotsgate/internal/escape"
	"robotsgate/policy/robotstxt"
)

// Bounds, since a robots.txt may have 50,000 rules.
const (
	// MaxDiff bounds a diff, in lines.
	MaxDiff = 500
	// MaxPaths bounds the paths that are compared for one change.
	MaxPaths = 20_000
)

// Diff returns the changes as a unified diff, safe for a terminal, and the number of further
// lines.
func Diff(oldName, was, newName, is string) (lines []string, more int) {
	text := string(diff.Diff(oldName, plain(was), newName, plain(is)))
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "diff ") {
			continue // the next lines name the versions too
		}
		if len(lines) == MaxDiff {
			more++
			continue
		}
		lines = append(lines, escape.Printable(strings.TrimRight(line, "\r\n")))
	}
	return lines, more
}

// plain returns text with the ends of line that diff needs.
func plain(text string) []byte {
	return []byte(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text))
}

// A Difference is a path for which two versions decide differently.
type Difference struct {
	Tokens []string
	Path   string
	Was    robotstxt.Verdict
	Is     robotstxt.Verdict
}

// Compare returns the paths for which two versions decide differently, for the crawler with
// these product tokens. It compares the given paths, and paths made from the patterns of both
// versions.
func Compare(was, is *robotstxt.File, tokens, paths []string) (all []Difference) {
	for _, path := range some(slices.Concat(paths, []string{"/"}, examples(was.Group(tokens...)), examples(is.Group(tokens...))), MaxPaths) {
		before, after := was.Decide(path, tokens...), is.Decide(path, tokens...)
		if before.Allowed != after.Allowed {
			all = append(all, Difference{tokens, path, before, after})
		}
	}
	return all
}

// some returns the first paths, each once, at most a number of them, sorted.
func some(paths []string, most int) []string {
	chosen := map[string]bool{}
	for _, path := range paths {
		if len(chosen) < most {
			chosen[path] = true
		}
	}
	return slices.Sorted(maps.Keys(chosen))
}

// examples returns paths that the patterns of a group match, and some that they almost match.
func examples(g robotstxt.Group) (paths []string) {
	for r := range g.Rules() {
		if len(paths) >= MaxPaths {
			break
		}
		paths = append(paths, matching(r.Pattern)...)
	}
	return paths
}

// matching returns paths that a pattern matches, and some that it almost matches.
func matching(pattern string) (paths []string) {
	pattern, ends := strings.CutSuffix(pattern, "$")
	path := strings.ReplaceAll(pattern, "*", "")
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	paths = append(paths, path)
	if strings.Contains(pattern, "*") {
		paths = append(paths, strings.ReplaceAll(pattern, "*", "x"))
	}
	if ends {
		paths = append(paths, path+"x")
	}
	for i, path := range paths {
		paths[i] = robotstxt.PathOf(path)
	}
	return paths
}

// Tokens returns the names that have a group in either version, and "" for all other crawlers:
// the crawlers for which a change may matter. It returns at most limit names.
func Tokens(was, is *robotstxt.File, limit int) []string {
	all := []string{""}
	for _, f := range []*robotstxt.File{was, is} {
		for name := range f.Names() {
			if len(all) < limit && !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	slices.Sort(all)
	return all
}

// Words describes a verdict and its reason.
func Words(v robotstxt.Verdict) string {
	verb := "deny"
	if v.Allowed {
		verb = "allow"
	}
	switch v.Reason {
	case robotstxt.ByRule:
		verb += fmt.Sprintf(" (line %d: %s)", v.Rule.Line, escape.Printable(v.Rule.String()))
	case robotstxt.NoMatch:
		verb += " (no rule matches)"
	case robotstxt.NoGroup:
		verb += " (no group)"
	case robotstxt.TooComplex:
		verb += " (too many steps)"
	}
	return verb
}
