package robotstxt

import ()

// A Pattern is compared with paths and measured as the patterns of Allow and Disallow are (RFC
// 9309, section 2.2.2). It is for other lines and files that state something about paths.
type Pattern struct {
	code   string
	octets int
}

// NewPattern returns the pattern that a file writes as text. One that begins with neither a
// slash nor a star matches no path.
func NewPattern(text string) Pattern {
	return Pattern{patternCode(text), octets(text)}
}

// Octets returns the length by which the longest of several patterns is found.
func (p Pattern) Octets() int { return p.octets }

// A PathMatcher compares many patterns with one path. It takes a bounded number of steps for
// all of them together, see [PathMatcher.Exhausted]. It is not safe for concurrent use.
type PathMatcher struct {
	path   codedPath
	effort *Effort
}

// PathMatcher returns a PathMatcher that takes its steps from e, as others may.
func (e *Effort) PathMatcher(path string) *PathMatcher { return &PathMatcher{newPath(path), e} }

// Matches reports whether p matches the path. It also returns true if there are no steps left to
// find that out.
func (m *PathMatcher) Matches(p Pattern) bool {
	if p.code == "" || p.code[0] != '/' && p.code[0] != '*' {
		return false
	}
	return m.Exhausted() || m.path.Matches(p.code, &m.effort.steps) || m.Exhausted()
}

// Exhausted reports whether Matches has returned true for a pattern because no steps were left.
// That takes a file that is made for it.
func (m *PathMatcher) Exhausted() bool { return m.effort.Exhausted() }
