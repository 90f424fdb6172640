package robotstxt

import (
	"strings"

	"robotsgate/policy/robotstxt/internal/match"
)

// A Pattern is compared with paths and measured as the patterns of Allow and Disallow are (RFC
// 9309, section 2.2.2). It is for other lines and files that state something about paths.
type Pattern struct {
	normal string // in normal form
	query  string // for the second comparison, see match.ComparesQuery; "" if there is none
	octets int
}

// NewPattern returns the pattern that a file writes as text. One that begins with neither a
// slash nor a star matches no path.
func NewPattern(text string) Pattern {
	p := ofNormal(match.Normal(text))
	if p.normal != text {
		// A $ is encoded as it is in paths, but counts as the one octet that it is.
		p.octets -= 2 * strings.Count(strings.TrimSuffix(text, "$"), "$")
	}
	return p
}

// ofNormal returns the pattern with a normal form.
func ofNormal(normal string) Pattern {
	p := Pattern{normal: normal, octets: len(normal)}
	if match.ComparesQuery(normal) {
		p.query = match.EncodeQuery(normal)
	}
	return p
}

// decoded returns the pattern with the sub-delims of its query decoded, of the same length in octets as p;
// false if it has no encoded ones.
func (p Pattern) decoded() (Pattern, bool) {
	normal := match.DecodePatternDelims(p.normal)
	if normal == p.normal {
		return p, false
	}
	decoded := ofNormal(normal)
	decoded.octets = p.octets
	return decoded, true
}

// Octets returns the length by which the longest of several patterns is found.
func (p Pattern) Octets() int { return p.octets }

// A PathMatcher compares many patterns with one path. It takes a bounded number of steps for
// all of them together, see [PathMatcher.Exhausted]. It is not safe for concurrent use.
type PathMatcher struct {
	path, query pathFinder
	equalDelims bool // as in Reading
	effort      *Effort
}

// PathMatcher returns a PathMatcher that takes its steps from e, as others may.
func (e *Effort) PathMatcher(r Reading) *PathMatcher {
	path := r.normal()
	if path == "" {
		path = "/" // what a URL without a path asks for
	}
	return &PathMatcher{
		path: pathFinder{path: path}, query: pathFinder{path: match.EncodeQuery(path)},
		equalDelims: r.EqualDelims, effort: e,
	}
}

// Matches reports whether p matches the path. It also returns true if there are no steps left to
// find that out.
func (m *PathMatcher) Matches(p Pattern) bool {
	if p.normal == "" || p.normal[0] != '/' && p.normal[0] != '*' {
		return false
	}
	if m.matches(&m.path, p.normal) || p.query != "" && m.matches(&m.query, p.query) {
		return true
	}
	if !m.equalDelims {
		return false
	}
	p, ok := p.decoded()
	return ok && (m.matches(&m.path, p.normal) || p.query != "" && m.matches(&m.query, p.query))
}

func (m *PathMatcher) matches(f *pathFinder, pattern string) bool {
	found, ok := f.matches(pattern, m.effort)
	return found || !ok
}

// Exhausted reports whether Matches has returned true for a pattern because no steps were left.
// That takes some 20 milliseconds, and a file that is made for it.
func (m *PathMatcher) Exhausted() bool { return m.effort.Exhausted() }

// A pathFinder compares patterns with one spelling of the path.
type pathFinder struct {
	match.Finder
	path string
}

// matches reports whether a pattern matches. ok is false if the effort is not enough to find that out.
func (f *pathFinder) matches(pattern string, e *Effort) (found, ok bool) {
	literal := match.LiteralLen(pattern)
	if !strings.HasPrefix(f.path, pattern[:literal]) {
		return false, true
	}
	if literal == len(pattern) {
		return true, true
	}
	f.Steps = e.steps
	if !e.indexed || f.Indexed() || f.BuildIndex(f.path) {
		found = f.MatchWild(pattern[literal:], f.path[literal:])
	}
	e.steps = f.Steps
	return found, f.Steps >= 0
}
