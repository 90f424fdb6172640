package robotstxt

import (
	"cmp"
	"math"
)

// A Reason says why a Verdict is what it is.
type Reason string

const (
	ByRule   Reason = "rule"     // a rule matched
	NoMatch  Reason = "no-match" // the crawler has a group, but none of its rules matched
	NoGroup  Reason = "no-group" // there is no group for this crawler, and none for all
	Implicit Reason = "implicit" // the path is that of the robots.txt itself

	// TooComplex: comparing the rules with the path takes more than the bounded number of
	// steps, so the path is denied.
	TooComplex Reason = "too-complex"
)

// A Verdict is what a robots.txt says about one path and one crawler.
type Verdict struct {
	Allowed bool
	Reason  Reason
	Rule    Rule  // the rule that decided, if Reason is ByRule
	Group   Group // the group obeyed, whatever the reason
}

// Decide says whether the crawler with these product tokens may request path, a URL's path
// and query as they are sent. A path that no rule matches is allowed (RFC 9309, section
// 2.2.2).
func (f *File) Decide(path string, tokens ...string) Verdict {
	effort := NewEffort()
	return f.DecideWithin(&effort, path, tokens...)
}

// An Effort is how much work several decisions may take together, such as the decisions
// about all [Readings] of a path. The zero Effort is used up.
type Effort struct {
	steps int // that are left
}

// NewEffort returns the effort of one decision, some 20 milliseconds.
func NewEffort() Effort { return Effort{maxSteps} }

// Exhausted reports whether the effort was not enough.
func (e *Effort) Exhausted() bool { return e.steps <= 0 }

// DecideWithin is Decide with a bounded effort, from which it subtracts its own.
func (f *File) DecideWithin(e *Effort, path string, tokens ...string) Verdict {
	group := f.Group(tokens...)
	p := newPath(path)
	if p.IsRobots() {
		return Verdict{Allowed: true, Reason: Implicit, Group: group}
	}
	if !group.OK() {
		return Verdict{Allowed: true, Reason: NoGroup}
	}
	best := group.search(p, &e.steps)
	switch {
	case e.Exhausted():
		return Verdict{Reason: TooComplex, Group: group}
	case best == nil:
		return Verdict{Allowed: true, Reason: NoMatch, Group: group}
	}
	rule := f.public(best)
	return Verdict{Allowed: rule.Allow, Reason: ByRule, Rule: rule, Group: group}
}

// search returns the rule that governs path; nil if there is none. If no steps are left, the result is void.
func (g Group) search(path codedPath, steps *int) (best *rule) {
	for s := range g.sections() {
		for i := range s.rules { // the best first
			r := &s.rules[i]
			if *steps <= 0 || best != nil && !r.beats(best) {
				break
			}
			if path.Matches(r.pattern, steps) {
				best = r
			}
		}
	}
	return best
}

// Match returns the rule that governs path, a URL's path and query in wire order
// and without fragment. If ok is false no rule applies, and the path is allowed.
// The number of its steps is not bounded, unlike that of [File.Decide]: it is for rules
// that are trusted.
func (g Group) Match(path string) (r Rule, ok bool) {
	steps := math.MaxInt
	best := g.search(newPath(path), &steps)
	if best == nil {
		return Rule{}, false
	}
	return g.file.public(best), true
}

// byRank puts the rule that governs first.
func byRank(a, b *rule) int { return cmp.Or(cmp.Compare(b.rank, a.rank), cmp.Compare(a.line, b.line)) }
