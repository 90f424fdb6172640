package robotstxt

import (
	"robotsgate/policy/robotstxt/internal/match"
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
func (f *File) Decide(path string, tokens ...string) (v Verdict) {
	for _, effort := range []Effort{Quick(), Thorough()} {
		if v = f.DecideWithin(&effort, Reading{Path: path}, tokens...); v.Reason != TooComplex {
			break
		}
	}
	return v
}

// An Effort is how much work several decisions may take together, such as the decisions
// about all [Readings] of a path. Use [Quick] first, and [Thorough] if the reason is
// TooComplex. The zero Effort is used up.
type Effort struct {
	steps   int // that are left
	indexed bool
}

// Quick is an effort of about a millisecond, which is enough for nearly all files.
func Quick() Effort { return Effort{steps: match.QuickSteps} }

// Thorough is the most that a decision may take, some 20 milliseconds.
func Thorough() Effort { return Effort{steps: match.MaxSteps, indexed: true} }

// Exhausted reports whether the effort was not enough.
func (e *Effort) Exhausted() bool { return e.steps < 0 }

// The measured cost of each octet of a path that has other readings, and of one that has them by its query only.
const (
	readingSteps = 300
	querySteps   = 8
)

// Readings is [Readings] with a bounded effort. If that is not enough, ok is false.
func (e *Effort) Readings(path string) (readings []Reading, ok bool) {
	switch {
	case hasReadings(path):
		e.steps -= readingSteps * len(path)
	case match.HasDelims(path):
		e.steps -= querySteps * len(path)
	default:
		return nil, true
	}
	if e.steps < 0 {
		return nil, false
	}
	return Readings(path), true
}

// DecideWithin is Decide with a bounded effort, from which it subtracts its own.
func (f *File) DecideWithin(e *Effort, r Reading, tokens ...string) Verdict {
	group := f.Group(tokens...)
	path := r.normal()
	if path == "/robots.txt" {
		return Verdict{Allowed: true, Reason: Implicit, Group: group}
	}
	if !group.OK() {
		return Verdict{Allowed: true, Reason: NoGroup}
	}
	best := candidate{file: f, Finder: match.Finder{Steps: e.steps}, equalDelims: r.EqualDelims}
	done := group.search(&best, path, e.indexed)
	e.steps = best.Steps
	switch {
	case !done:
		return Verdict{Reason: TooComplex, Group: group}
	case best.rule == nil:
		return Verdict{Allowed: true, Reason: NoMatch, Group: group}
	}
	rule := f.public(best.rule)
	return Verdict{Allowed: rule.Allow, Reason: ByRule, Rule: rule, Group: group}
}
