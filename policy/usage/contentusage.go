package usage

import "strings"

// maxValue bounds a Content-Usage field with all its lines, and a line of another signal, in bytes.
// A longer one states nothing. RFC 9651, 3.2, requires 1,024 members with keys of 64 characters.
const maxValue = 128 << 10

// readContentUsage reads Content-Usage: a rule in a group of robots.txt, and a response field
// (draft-ietf-aipref-attach-05).
func readContentUsage(c *collector) {
	s := &c.statement
	for _, l := range c.linesInForce("Content-Usage", isDictionary) {
		if s.contentUsage(l.statement) {
			c.state(s, ContentUsage, InRobots, l.number)
		}
	}
	if field, ok := joined(c.in.Header["Content-Usage"]); ok && s.contentUsage(field) {
		c.state(s, ContentUsage, InHeader, 0)
	}
}

// contentUsage reads a statement: a Dictionary in which the Tokens y and n have a meaning
// (draft-ietf-aipref-vocab-08, 6). It reports whether s is one.
func (s *statement) contentUsage(text string) bool {
	s.reset()
	return parseDictionary(text, func(key, token string) {
		v := unknown // another Token or type is no mistake (6.5)
		switch token {
		case "y":
			v = yes
		case "n":
			v = no
		}
		if key == LevelCategory {
			return // Content-Usage has no levels, and the name is taken
		}
		s.set(key, v, func(_, second value) value { return second }) // the last one counts (6.5.1)
	})
}

func isDictionary(s string) bool { return parseDictionary(s, func(string, string) {}) }

// joined returns the lines of a field as one value (RFC 9651, 4.2), if it is within its bound.
func joined(lines []string) (value string, ok bool) {
	n := 0
	for _, line := range lines {
		n += len(line) + len(", ")
	}
	if n == 0 || n-len(", ") > maxValue {
		return "", false
	}
	if len(lines) == 1 {
		return strings.Trim(lines[0], space), true
	}
	trimmed := make([]string, len(lines))
	for i, line := range lines {
		trimmed[i] = strings.Trim(line, space)
	}
	return strings.Join(trimmed, ", "), true
}
