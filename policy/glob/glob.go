// Package glob matches host names, and other short texts such as User-Agent
// headers, against patterns in which * stands for any number of characters; all
// other characters are literal.
//
// Compile a pattern with [Host] or [Text], then call [Glob.Match] as often as
// needed. Globs of hosts are compared with the canonical form of a host, see [canonical.Host].
//
// The package does no I/O. A Glob may be used by several goroutines at once.
package glob

import (
	"strings"

	"robotsgate/policy/canonical"
)

// A Glob is a compiled pattern. The zero Glob matches only the empty string.
type Glob struct {
	source string
	parts  []string // the texts between the stars, in lower case
	host   bool     // the text may end in the dot of the DNS root
}

// Text compiles a pattern for free text such as a User-Agent. It matches the
// whole text and ignores the case of ASCII letters.
func Text(pattern string) Glob {
	return Glob{source: pattern, parts: strings.Split(canonical.Lower(pattern), "*")}
}

// Host compiles a glob for host names or literal addresses: *.example.com
// matches every name below example.com, not example.com itself. A pattern is
// made canonical as by [canonical.HostPattern].
func Host(pattern string) (Glob, error) {
	name, err := canonical.HostPattern(pattern)
	if err != nil {
		return Glob{}, err
	}
	return Glob{source: name, parts: strings.Split(name, "*"), host: true}, nil
}

// String returns the pattern. For a host, it is in canonical form.
func (g Glob) String() string { return g.source }

// Match reports whether g matches the whole of s. Its time is linear in s for
// any number of stars: the leftmost place of each part leaves the most text for
// the parts after it, so there is no backtracking.
func (g Glob) Match(s string) bool {
	if len(g.parts) == 0 {
		return s == ""
	}
	s = canonical.Lower(s)
	if g.host {
		s = strings.TrimSuffix(s, ".")
	}
	first, last := g.parts[0], g.parts[len(g.parts)-1]
	if len(g.parts) == 1 {
		return s == first
	}
	if len(s) < len(first)+len(last) || !strings.HasPrefix(s, first) || !strings.HasSuffix(s, last) {
		return false
	}
	s = s[len(first) : len(s)-len(last)]
	for _, part := range g.parts[1 : len(g.parts)-1] {
		_, rest, found := strings.Cut(s, part)
		if !found {
			return false
		}
		s = rest
	}
	return true
}
