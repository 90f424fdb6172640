package usage

import (
	"slices"
	"strings"
)

// readContentSignal reads Content-Signal, of Cloudflare's Content Signals Policy (September 2025): a
// rule in a group of robots.txt, and a response field. Where the policy says nothing, its lines are
// read as those of Content-Usage.
func readContentSignal(c *collector) {
	s := &c.statement
	for _, l := range c.linesInForce("Content-Signal", isContentSignal) {
		s.contentSignal(l.statement)
		c.state(s, ContentSignal, InRobots, l.number)
	}
	for _, line := range c.in.Header["Content-Signal"] { // each is a statement
		if len(line) <= maxValue && s.contentSignal(line) {
			c.state(s, ContentSignal, InHeader, 0)
		}
	}
}

// contentSignal reads a line of members such as "ai-train=no". A member without that form states
// nothing, and does not spoil the others. It reports whether any member has that form.
//
// The policy has labels, values and examples, but no grammar: this is how Cloudflare's own readers
// take a line apart.
func (s *statement) contentSignal(text string) (ok bool) {
	s.reset()
	return parseContentSignal(text, func(label, text string) {
		v := value(max(0, slices.IndexFunc(signalValues, func(s string) bool { return equalFold(text, s) })))
		if v != unknown && (v > no) == (label == LevelCategory) {
			s.set(label, v, noWins)
		}
	})
}

// signalValues are the values of Content-Signal.
var signalValues = []string{unknown: "", yes: "yes", no: "no", full: "full", reference: "reference", immediate: "immediate"}

// parseContentSignal calls member for each member that has a label and a value: with the label in lower
// case, and the value as it is written. It reports whether there is one.
func parseContentSignal(text string, member func(label, value string)) (ok bool) {
	for more := true; more; {
		var m string
		m, text, more = strings.Cut(text, ",")
		label, v, found := strings.Cut(m, "=")
		label = strings.Map(lowerASCII, strings.Trim(label, space))
		if found && isKey(label) {
			member(label, strings.Trim(v, space))
			ok = true
		}
	}
	return ok
}

func isContentSignal(text string) bool { return parseContentSignal(text, func(string, string) {}) }

// noWins returns the less permissive value.
func noWins(first, second value) value { return max(first, second) }

// lowerASCII maps A to Z only: Unicode's mapping would find an s in a long s.
func lowerASCII(r rune) rune {
	if 'A' <= r && r <= 'Z' {
		return r + 'a' - 'A'
	}
	return r
}
