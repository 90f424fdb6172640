package usage

import (
	"iter"
	"strings"
)

// readContentSignal reads Content-Signal, of Cloudflare's Content Signals Policy (September 2025): a
// rule in a group of robots.txt, and a response field. Where the policy says nothing, its lines are
// read as those of Content-Usage.
func readContentSignal(c *collector) {
	s := statement{lists: c.mayList}
	for _, l := range c.linesInForce("Content-Signal", isContentSignal) {
		s.contentSignal(l.statement)
		c.state(&s, ContentSignal, InRobots, l.number)
	}
	for _, line := range c.in.Header["Content-Signal"] { // each is a statement
		if len(line) <= maxValue && s.contentSignal(line) {
			c.state(&s, ContentSignal, InHeader, 0)
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
	for label, v := range signalMembers(text) {
		ok = true
		switch {
		case equalFold(v, "yes"):
			s.set(lowered(label), yes, noWins)
		case equalFold(v, "no"):
			s.set(lowered(label), no, noWins)
		}
	}
	return ok
}

// signalMembers returns the label and the value of each member that has both.
func signalMembers(text string) iter.Seq2[string, string] {
	return func(yield func(label, value string) bool) {
		for m := range strings.SplitSeq(text, ",") {
			label, v, found := strings.Cut(m, "=")
			label = strings.Trim(label, space)
			if found && isLabel(label) && !yield(label, strings.Trim(v, space)) {
				return
			}
		}
	}
}

func isContentSignal(text string) bool {
	for range signalMembers(text) {
		return true
	}
	return false
}

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
