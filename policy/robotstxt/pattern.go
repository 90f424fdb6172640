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
	p := Pattern{normal: match.Normal(text)}
	p.octets = len(p.normal)
	if p.normal != text {
		// A $ is encoded as it is in paths, but counts as the one octet that it is.
		p.octets -= 2 * strings.Count(strings.TrimSuffix(text, "$"), "$")
	}
	if match.ComparesQuery(p.normal) {
		p.query = match.EncodeQuery(p.normal)
	}
	return p
}

// Octets returns the length by which the longest of several patterns is found.
func (p Pattern) Octets() int { return p.octets }

// A PathMatcher compares many patterns with one path. It takes a bounded number of steps for
// all of them together, see [PathMatcher.Exhausted]. It is not safe for concurrent use.
type PathMatcher struct {
	path, query pathFinder
}

// NewPathMatcher returns a PathMatcher for the path and query of a URL, without fragment.
func NewPathMatcher(path string) *PathMatcher {
	path = Normalize(path)
	if path == "" {
		path = "/" // what a URL without a path asks for
	}
	m := &PathMatcher{}
	m.path.begin(path)
	m.query.begin(match.EncodeQuery(path))
	return m
}

// Matches reports whether p matches the path. It also returns true if there are no steps left to
// find that out.
func (m *PathMatcher) Matches(p Pattern) bool {
	if p.normal == "" || p.normal[0] != '/' && p.normal[0] != '*' {
		return false
	}
	return m.path.matches(p.normal) || p.query != "" && m.query.matches(p.query)
}

// Exhausted reports whether Matches has returned true for a pattern because no steps were left.
// That takes some 20 milliseconds, and a file that is made for it.
func (m *PathMatcher) Exhausted() bool { return m.path.Steps < 0 || m.query.Steps < 0 }

// A pathFinder compares patterns with one spelling of the path. As a decision does, it begins
// with a quick effort, and goes on with a thorough one.
type pathFinder struct {
	match.Finder
	path string
}

func (f *pathFinder) begin(path string) { f.path, f.Steps = path, match.QuickSteps }

// matches reports whether a pattern matches; true if no steps are left to find that out.
func (f *pathFinder) matches(pattern string) bool {
	literal := match.LiteralLen(pattern)
	if !strings.HasPrefix(f.path, pattern[:literal]) {
		return false
	}
	if literal == len(pattern) {
		return true
	}
	found := f.MatchWild(pattern[literal:], f.path[literal:])
	if f.Steps < 0 && !f.Indexed() {
		if f.Steps = match.MaxSteps; f.BuildIndex(f.path) {
			found = f.MatchWild(pattern[literal:], f.path[literal:])
		}
	}
	return found || f.Steps < 0
}
