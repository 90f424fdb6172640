package robotstxt

import "strings"

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
func (g Group) Match(path string) (r Rule, ok bool) {
	return g.match(Normalize(path))
}

func (g Group) match(path string) (r Rule, ok bool) {
	if path == "" {
		path = "/" // what a URL without a path asks for
	}
	best := candidate{file: g.file}
	for s := range g.sections() {
		best.search(s.rules(g.file), path)
	}
	// Only for rules that may tell the difference is there a second comparison.
	encoded := ""
	for s := range g.sections() {
		rules := s.queryRules(g.file)
		if len(rules) == 0 {
			continue
		}
		if encoded == "" {
			encoded = encodeQuery(path)
		}
		best.search(rules, encoded)
	}
	if best.rule == nil {
		return Rule{}, false
	}
	return g.file.ruleAsWritten(best.rule), true
}

// matchWild reports whether s begins as rest says, where rest is what follows the
// literal beginning of a pattern: nothing, or a text that begins with a wildcard.
//
// A star takes as little as the text behind it allows. To take more can't help:
// whatever matches further on, also matches from the earlier place on. So every
// octet of s is looked at once, and the time is linear for any number of stars.
func matchWild(rest, s string) bool {
	rest, anchored := strings.CutSuffix(rest, "$")
	if rest == "" {
		return !anchored || s == ""
	}
	for {
		segment, more, found := strings.Cut(rest[1:], "*")
		if !found {
			return anchored && strings.HasSuffix(s, segment) || !anchored && strings.Contains(s, segment)
		}
		i := strings.Index(s, segment)
		if i < 0 {
			return false
		}
		s = s[i+len(segment):]
		rest = rest[len(rest)-len(more)-1:]
	}
}
