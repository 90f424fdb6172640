package robotstxt

import (
	"math"
	"strings"

	"robotsgate/policy/robotstxt/internal/match"
)

// Match returns the rule that governs path, a URL's path and query in wire order
// and without fragment. If ok is false no rule applies, and the path is allowed.
// The number of its steps is not bounded, unlike that of [File.Decide]: it is for rules
// that are trusted.
func (g Group) Match(path string) (r Rule, ok bool) { return g.MatchReading(Reading{Path: path}) }

// MatchReading is [Group.Match] for a reading of a path.
func (g Group) MatchReading(path Reading) (r Rule, ok bool) {
	best := candidate{file: g.file, Finder: match.Finder{Steps: math.MaxInt}, equalDelims: path.EqualDelims}
	g.search(&best, path.normal(), false)
	if best.rule == nil {
		return Rule{}, false
	}
	return g.file.public(best.rule), true
}

// search looks for the rule that governs path, which is in normal form. It returns false
// if it has given up because no steps are left. If indexed, it searches a table of
// the path, which costs to build, and then finds sooner what patterns have between
// their wildcards.
func (g Group) search(best *candidate, path string, indexed bool) bool {
	if path == "" {
		path = "/" // what a URL without a path asks for
	}
	if indexed && !best.BuildIndex(path) {
		return false
	}
	compares := false
	for s := range g.searched(best.equalDelims) {
		if best.search(s.rules, path); best.Steps < 0 {
			return false
		}
		compares = compares || len(s.queryRules) > 0
	}
	if !compares {
		return true // only rules that may tell the difference need a second comparison
	}
	encoded := match.EncodeQuery(path)
	if indexed && encoded != path && !best.BuildIndex(encoded) {
		return false
	}
	for s := range g.searched(best.equalDelims) {
		if best.search(s.queryRules, encoded); best.Steps < 0 {
			return false
		}
	}
	return true
}

// A candidate is the best rule found so far.
type candidate struct {
	match.Finder
	file *File
	rule *rule

	equalDelims bool // as in Reading
	collects    bool // all rules that match, in found
	found       []*rule
}

// search looks for a better candidate among the rules of a section.
func (c *candidate) search(rules []rule, path string) {
	c.Steps -= 16
	if len(rules) < indexedFrom {
		for i := 0; i < len(rules) && c.Steps >= 0; i++ {
			literal := rules[i].literal()
			if c.Steps -= 1 + len(literal); strings.HasPrefix(path, literal) {
				c.consider(&rules[i], len(literal), path)
			}
		}
		return
	}
	for end := lastRun(rules, path); end > 0 && c.Steps >= 0; {
		last := &rules[end-1]
		literal := last.literal()
		c.Steps -= 1 + len(literal)
		if strings.HasPrefix(path, literal) {
			if p := c.file.prefilters[last]; p != nil && !c.Indexed() {
				c.tryFiltered(p, len(literal), path)
			} else {
				c.try(rules[:end], literal, path)
			}
		}
		end = int(last.up)
	}
}

// try considers the run that ends rules, the best first, until one matches.
func (c *candidate) try(rules []rule, literal, path string) {
	for i := len(rules) - 1; i >= 0 && c.Steps >= 0; i-- {
		if r := &rules[i]; r.literal() != literal || !c.consider(r, len(literal), path) {
			return
		}
	}
}

// consider makes r the candidate if it matches and beats the one so far. The literal
// beginning is known to match. It reports whether a rule that r beats may be better.
func (c *candidate) consider(r *rule, literal int, path string) (more bool) {
	if !c.collects && c.rule != nil && !r.beats(c.rule) {
		return false
	}
	if literal < len(r.pattern) && !c.MatchWild(r.pattern[literal:], path[literal:]) {
		return true
	}
	c.rule = r
	if c.collects {
		c.found = append(c.found, r)
	}
	return c.collects
}
