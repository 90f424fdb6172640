package usage

import (
	"cmp"
	"strings"

	"robotsgate/policy/robotstxt"
)

// A line is a line of robots.txt with a statement that is in force.
type line struct {
	statement string
	number    int // 1-based
}

// linesInForce returns the lines with a name, such as Content-Usage, that are in force for the path: all
// lines of the group obeyed that have the longest matching path (draft-ietf-aipref-attach-05, 3.1). A line
// without a path matches everything and has length 0. A line with an unreadable statement does not count:
// a typing error must not hide another line. The result is valid until the next call.
func (c *collector) linesInForce(name string, readable func(statement string) bool) []line {
	force := c.force[:0]
	if c.in.Denied {
		return nil // what may not be crawled has no preference (3, 3.1)
	}
	longest := -1
	for r := range c.in.Group.Fields(name) {
		path, statement := cutPath(r.Value)
		octets := 0
		if path != "" {
			pattern := robotstxt.NewPattern(path)
			if octets = pattern.Octets(); octets < longest || !c.matches(pattern) {
				continue
			}
		}
		if octets < longest || len(r.Value) > maxValue || !readable(statement) {
			continue
		}
		// If it is not certain that a line matches, it hides no other, so that no "n" is lost.
		if certain := c.matcher == nil || !c.matcher.Exhausted(); certain && octets > longest {
			longest = octets
			force = force[:0]
		}
		force = append(force, line{statement, r.Line})
	}
	c.force = force
	return force
}

// matches reports whether the pattern matches the path.
func (c *collector) matches(pattern robotstxt.Pattern) bool {
	if c.matcher == nil {
		c.matcher = cmp.Or(c.in.Effort, new(robotstxt.NewEffort())).PathMatcher(c.in.Path)
	}
	return c.matcher.Matches(pattern)
}

// cutPath returns the path that begins a value, and the statement after it. A value that does not
// begin with a slash has no path (draft-ietf-aipref-attach-05, 3.2).
func cutPath(value string) (path, statement string) {
	if !strings.HasPrefix(value, "/") {
		return "", value
	}
	if i := strings.IndexAny(value, space); i >= 0 {
		return value[:i], strings.Trim(value[i:], space)
	}
	return value, ""
}

// space is the white space of HTTP fields (RFC 9110, 5.6.3) and of robots.txt.
const space = " \t"
