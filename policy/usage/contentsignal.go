package usage

import "strings"

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
	return parseContentSignal(text, func(label, v string) {
		switch {
		case equalFold(v, "yes"):
			s.set(lowered(label), yes, noWins)
		case equalFold(v, "no"):
			s.set(lowered(label), no, noWins)
		}
	})
}

// parseContentSignal calls member for each member that has a label and a value, as they are written. It
// reports whether there is one.
func parseContentSignal(text string, member func(label, value string)) (ok bool) {
	for more := true; more; {
		var m string
		m, text, more = strings.Cut(text, ",")
		label, v, found := strings.Cut(m, "=")
		label = strings.Trim(label, space)
		if found && isLabel(label) {
			member(label, strings.Trim(v, space))
			ok = true
		}
	}
	return ok
}

func isContentSignal(text string) bool { return parseContentSignal(text, func(string, string) {}) }

func noWins(first, second value) value { return max(first, second) }

// isLabel reports whether a label in lower case would be a key (RFC 9651, 3.1.2).
func isLabel(label string) bool {
	for i := range len(label) {
		if c := lowerByte(label[i]); i == 0 && !keyStart[c] || !keyBytes[c] {
			return false
		}
	}
	return label != ""
}

// lowered returns a label in lower case.
func lowered(label string) string {
	for i := range len(label) {
		if lowerByte(label[i]) != label[i] {
			return strings.ToLower(label) // it is in ASCII
		}
	}
	return label
}

// lowerByte maps A to Z only: Unicode's mapping would find an s in a long s.
func lowerByte(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
