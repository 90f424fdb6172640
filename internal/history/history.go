// Package history says what a change of a robots.txt has changed: its lines, and the
// decisions that differ.
package history

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"robotsgate/internal/escape"
	"robotsgate/policy/robotstxt"
)

// What is looked at and told is bounded: a robots.txt may have 50,000 rules.
const (
	// MaxDiff bounds a diff, in lines.
	MaxDiff = 500
	// MaxPaths bounds the paths that are tried for one change.
	MaxPaths = 20_000
)

// Diff returns what has changed as a unified diff, fit for a terminal. more is how many
// lines are left out.
func Diff(oldName, was, newName, is string) (lines []string, more int) {
	text := string(diff.Diff(oldName, plain(was), newName, plain(is)))
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "diff ") {
			continue // the two names come again
		}
		if len(lines) == MaxDiff {
			more++
			continue
		}
		lines = append(lines, escape.Printable(strings.TrimRight(line, "\r\n")))
	}
	return lines, more
}

// plain returns text with ends of lines as diff knows them.
func plain(text string) []byte {
	return []byte(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text))
}

// A Difference is a path about which two versions decide differently.
type Difference struct {
	Tokens []string
	Path   string
	Was    robotstxt.Verdict
	Is     robotstxt.Verdict
}

// Compare returns the paths about which two versions decide differently for the
// crawler that obeys these product tokens: of those given, and of what the patterns of
// both mean literally.
func Compare(was, is *robotstxt.File, tokens, paths []string) (all []Difference) {
	tried := map[string]bool{}
	for _, path := range slices.Concat(paths, []string{"/"}, examples(was.Group(tokens...)), examples(is.Group(tokens...))) {
		if tried[path] || len(tried) >= MaxPaths {
			continue
		}
		tried[path] = true
		before, after := was.Decide(path, tokens...), is.Decide(path, tokens...)
		if before.Allowed != after.Allowed {
			all = append(all, Difference{tokens, path, before, after})
		}
	}
	slices.SortStableFunc(all, func(a, b Difference) int { return cmp.Compare(a.Path, b.Path) })
	return all
}

// examples returns paths that the patterns of a group match, and some just beside.
func examples(g robotstxt.Group) (paths []string) {
	for r := range g.Rules() {
		if len(paths) >= MaxPaths {
			break
		}
		pattern, ends := strings.CutSuffix(r.Pattern, "$")
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
	}
	for i, path := range paths {
		paths[i] = robotstxt.PathOf(path)
	}
	return paths
}

// Tokens returns the names that have a group in either version, "" for all others:
// whom a change may concern. They are at most most.
func Tokens(was, is *robotstxt.File, most int) []string {
	all := []string{""}
	for _, f := range []*robotstxt.File{was, is} {
		for name := range f.Names() {
			if len(all) < most && !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	slices.Sort(all)
	return all
}

// Words says what a version decides, and why.
func Words(v robotstxt.Verdict) string {
	verb := "deny"
	if v.Allowed {
		verb = "allow"
	}
	switch v.Reason {
	case robotstxt.ByRule:
		return fmt.Sprintf("%s (line %d: %s)", verb, v.Rule.Line, escape.Printable(v.Rule.String()))
	case robotstxt.NoMatch:
		return verb + " (no rule matches)"
	case robotstxt.NoGroup:
		return verb + " (no group)"
	case robotstxt.TooComplex:
		return verb + " (too many steps)"
	}
	return verb
}
