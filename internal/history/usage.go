package history

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"robotsgate/internal/escape"
	"robotsgate/policy/robotstxt"
	"robotsgate/policy/usage"
)

// statements are the names of the lines that state what content may be used for.
var statements = []string{"Content-Usage", "Content-Signal", "License"}

// maxStatementsRead bounds the work of CompareUsage: paths times lines that state something.
const maxStatementsRead = 2_000_000

// A Restatement is a path for which two versions state different usage preferences or licences.
type Restatement struct {
	Tokens []string
	Path   string
	Was    usage.Stated
	Is     usage.Stated
}

// CompareUsage returns the paths for which two versions state different preferences or licences, for the
// crawler with these product tokens. It compares the given paths, and paths made from the patterns of
// both versions, until the work exceeds a bound.
func CompareUsage(was, is *robotstxt.File, tokens, paths []string) []Restatement {
	lines := count(was) + count(is)
	if lines == 0 {
		return nil
	}
	before, after := was.Group(tokens...), is.Group(tokens...)
	candidates := slices.Concat([]string{"/"}, stated(before), stated(after), paths, examples(before), examples(after))
	return restatements(candidates, lines, maxStatementsRead, func(path string) Restatement {
		return Restatement{tokens, path, read(was, path, tokens), read(is, path, tokens)}
	})
}

// restatements returns the paths whose statements differ, sorted. The cost of one path is the same for all, and bound
// bounds the sum; the first path is always compared.
func restatements(paths []string, cost, bound int, compare func(path string) Restatement) (all []Restatement) {
	for _, path := range some(paths, max(bound/max(cost, 1), 1)) {
		r := compare(path)
		if !maps.Equal(r.Was.Values(), r.Is.Values()) || !slices.Equal(r.Was.URLs(), r.Is.URLs()) {
			all = append(all, r)
		}
	}
	return all
}

// count returns the number of lines that state something.
func count(f *robotstxt.File) (n int) {
	for _, name := range statements {
		for range f.Fields(name) {
			n++
		}
	}
	return n
}

// read returns what a file states for a path.
func read(f *robotstxt.File, path string, tokens []string) usage.Stated {
	v := f.Decide(path, tokens...)
	return usage.Read(&usage.Input{Robots: f, Group: f.Group(tokens...), Path: path, Denied: !v.Allowed})
}

// stated returns paths that the statements of a group are for.
func stated(g robotstxt.Group) (paths []string) {
	for _, name := range statements {
		for r := range g.Fields(name) {
			if strings.HasPrefix(r.Value, "/") && len(paths) < MaxPaths {
				pattern, _, _ := strings.Cut(strings.ReplaceAll(r.Value, "\t", " "), " ")
				paths = append(paths, matching(pattern)...)
			}
		}
	}
	return paths
}

// StatedWords describes what is stated: "train-ai=n (line 4), search=y (line 5)".
func StatedWords(s usage.Stated) string {
	var words []string
	for category, value := range s.Values() {
		var lines []int
		for _, p := range s.Preferences {
			if p.Category == category && p.Value() == value {
				lines = append(lines, p.Line)
			}
		}
		slices.Sort(lines)
		text := " (line"
		if len(lines) > 1 {
			text = " (lines"
		}
		text += " " + strings.Trim(strings.ReplaceAll(fmt.Sprint(lines), " ", ", "), "[]") + ")"
		if lines[0] == 0 { // of tdmrep.json
			text = ""
		}
		words = append(words, escape.Printable(category)+"="+value+text)
	}
	slices.Sort(words)
	for _, l := range s.Licenses {
		text := "licence " + escape.Printable(l.URL)
		if l.Line > 0 {
			text += fmt.Sprintf(" (line %d)", l.Line)
		}
		words = append(words, text)
	}
	return cmp.Or(strings.Join(words, ", "), "nothing")
}
