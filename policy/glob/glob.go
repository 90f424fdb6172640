// Package glob matches host names and other short texts against patterns in
// which * stands for any run of characters and everything else for itself.
//
// It is pure: a Glob is compiled once and may be used by many goroutines.
package glob

import "strings"

// A Glob is a compiled pattern. The zero Glob matches only the empty string.
type Glob struct {
	source string
	parts  []string // what stands between the stars, in lower case
	host   bool     // a host may end in the dot of the DNS root
}

// Text compiles a pattern for free text such as a User-Agent. It matches the
// whole text and ignores the case of ASCII letters.
func Text(pattern string) Glob {
	return Glob{source: pattern, parts: strings.Split(lower(pattern), "*")}
}

// String returns the pattern; for a host, in canonical form.
func (g Glob) String() string { return g.source }

// Match reports whether g matches the whole of s. Its time is linear in s, for
// any number of stars: the leftmost place for each part is never a worse
// choice than a later one, so nothing is tried twice.
func (g Glob) Match(s string) bool {
	if len(g.parts) == 0 {
		return s == ""
	}
	s = lower(s)
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
		i := strings.Index(s, part)
		if i < 0 {
			return false
		}
		s = s[i+len(part):]
	}
	return true
}

// lower maps ASCII letters only: strings.ToLower would also turn a Kelvin sign
// into a k, and one name must not pass for another.
func lower(s string) string {
	for i := range len(s) {
		if 'A' <= s[i] && s[i] <= 'Z' {
			b := []byte(s)
			for j := i; j < len(b); j++ {
				if 'A' <= b[j] && b[j] <= 'Z' {
					b[j] += 'a' - 'A'
				}
			}
			return string(b)
		}
	}
	return s
}
