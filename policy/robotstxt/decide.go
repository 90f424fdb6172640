package robotstxt

// A Reason says why a Verdict is what it is.
type Reason string

const (
	ByRule   Reason = "rule"     // a rule matched
	NoMatch  Reason = "no-match" // the crawler has a group, but none of its rules matched
	NoGroup  Reason = "no-group" // no group is for this crawler, nor for all
	Implicit Reason = "implicit" // the path is that of the robots.txt itself

	// TooComplex: the rules could not be compared with the path in a bounded number of
	// steps, so it is not allowed.
	TooComplex Reason = "too-complex"
)

// A Verdict is what a robots.txt says about one path and one crawler.
type Verdict struct {
	Allowed bool
	Reason  Reason
	Rule    Rule  // the rule that decided, if Reason is ByRule
	Group   Group // the group obeyed, whatever the reason
}

// Decide says whether the crawler that obeys the given product tokens may ask for
// path, a URL's path and query as they are sent. It allows whatever no rule
// forbids (RFC 9309, 2.2.2).
func (f *File) Decide(path string, tokens ...string) Verdict {
	return f.decide(path, tokens, true)
}

// DecideQuick is Decide for as long as that takes little time, about a millisecond.
// If the reason is TooComplex, ask Decide.
func (f *File) DecideQuick(path string, tokens ...string) Verdict {
	return f.decide(path, tokens, false)
}

func (f *File) decide(path string, tokens []string, thorough bool) Verdict {
	group := f.Group(tokens...)
	path = Normalize(path)
	if path == "/robots.txt" {
		return Verdict{Allowed: true, Reason: Implicit, Group: group}
	}
	if !group.OK() {
		return Verdict{Allowed: true, Reason: NoGroup}
	}
	best := candidate{file: f, finder: finder{steps: quickSteps}}
	done := group.search(&best, path, false)
	if !done && thorough {
		best = candidate{file: f, finder: finder{steps: maxSteps}}
		done = group.search(&best, path, true)
	}
	switch {
	case !done:
		return Verdict{Reason: TooComplex, Group: group}
	case best.rule == nil:
		return Verdict{Allowed: true, Reason: NoMatch, Group: group}
	}
	rule := f.ruleAsWritten(best.rule)
	return Verdict{Allowed: rule.Allow, Reason: ByRule, Rule: rule, Group: group}
}
