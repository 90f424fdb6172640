package match

import "strings"

// RFC 9309, section 2.2.2, has a table of paths and rules that must match. One row compares
// ?baz=https://foo.bar with ?baz=https%3A%2F%2Ffoo.bar. The normal form must keep the two
// apart: before the question mark %2F is not a slash. So a rule and a path are compared a
// second time, with these characters encoded on both sides after the first question mark.
const queryDelims = ":/?@[]"

// EncodeQuery encodes queryDelims after the first question mark of s.
func EncodeQuery(s string) string {
	i := strings.IndexByte(s, '?')
	if i < 0 || !strings.ContainsAny(s[i+1:], queryDelims) {
		return s
	}
	var buf [256]byte
	encoded := append(buf[:0], s[:i+1]...)
	for _, c := range []byte(s[i+1:]) {
		if strings.IndexByte(queryDelims, c) >= 0 {
			encoded = AppendEscaped(encoded, c)
		} else {
			encoded = append(encoded, c)
		}
	}
	return string(encoded)
}

// ComparesQuery reports whether a pattern needs the second comparison: the part of it that
// may lie in a query has one of queryDelims. Any other pattern could only match the inside
// of an encoded byte in addition.
func ComparesQuery(pattern string) bool {
	i := strings.IndexAny(pattern, "*?")
	if i < 0 {
		return false
	}
	rest := EncodeQuery(pattern[i:])
	for i := strings.IndexByte(rest, '%'); i >= 0; i = strings.IndexByte(rest, '%') {
		if c, ok := Unescape(rest[i:]); ok && strings.IndexByte(queryDelims, c) >= 0 {
			return true
		}
		rest = rest[i+1:]
	}
	return false
}
