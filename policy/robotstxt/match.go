package robotstxt

import (
	"math"

	"robotsgate/policy/robotstxt/internal/match"
)

// A Rule is one Allow or Disallow line.
type Rule struct {
	Allow   bool
	Line    int    // 1-based, so that a refusal can cite the line behind it
	Pattern string // as written in the file
}

// String returns the rule as a line of a robots.txt, its key spelt right.
func (r Rule) String() string {
	if r.Allow {
		return "Allow: " + r.Pattern
	}
	return "Disallow: " + r.Pattern
}

// Match returns the rule that governs path, a URL's path and query in wire order
// and without fragment. If ok is false no rule applies, and the path is allowed.
// The number of its steps is not bounded, unlike that of [File.Decide]: it is for rules
// that are trusted.
func (g Group) Match(path string) (r Rule, ok bool) {
	path = Normalize(path)
	best := candidate{file: g.file, Finder: match.Finder{Steps: match.QuickSteps}}
	if !g.search(&best, path, false) {
		best = candidate{file: g.file, Finder: match.Finder{Steps: math.MaxInt}}
		g.search(&best, path, true)
	}
	if best.rule == nil {
		return Rule{}, false
	}
	return g.file.ruleAsWritten(best.rule), true
}

// search looks for the rule that governs path, which is in normal form. It returns false
// if it has given up because no steps are left. If indexed, it searches an automaton of
// the path, which costs to build, and then finds sooner what patterns have between
// their wildcards.
func (g Group) search(best *candidate, path string, indexed bool) bool {
	if path == "" {
		path = "/" // what a URL without a path asks for
	}
	if indexed && !best.BuildIndex(path) {
		return false
	}
	for s := range g.sections() {
		if best.search(s.rules(g.file), path); best.Steps < 0 {
			return false
		}
	}
	// Only for rules that may tell the difference is there a second comparison.
	encoded := ""
	for s := range g.sections() {
		rules := s.queryRules(g.file)
		if len(rules) == 0 {
			continue
		}
		if encoded == "" {
			encoded = match.EncodeQuery(path)
			if indexed && encoded != path && !best.BuildIndex(encoded) {
				return false
			}
		}
		if best.search(rules, encoded); best.Steps < 0 {
			return false
		}
	}
	return true
}
