package match

import "strings"

// subDelims are the sub-delims of RFC 3986, 2.2, that mean the same encoded and as they are to programs that
// read a query, and the colon. The others separate parameters, or mean a space: & = and +. The normal form
// encodes * and $ already.
const subDelims = "!'(),;:"

func isSubDelim(c byte) bool { return strings.IndexByte(subDelims, c) >= 0 }

// HasDelims reports whether the query of a path has one of subDelims, encoded or not.
func HasDelims(path string) bool {
	i := strings.IndexByte(path, '?')
	if i < 0 {
		return false
	}
	for ; i < len(path); i++ {
		c := path[i]
		if c == '%' {
			c, _ = Unescape(path[i:])
		}
		if isSubDelim(c) {
			return true
		}
	}
	return false
}

// DecodeDelims decodes subDelims in the query of a path.
func DecodeDelims(path string) string { return decodeDelims(path, strings.IndexByte(path, '?')) }

// DecodePatternDelims decodes subDelims in the part of a pattern that may lie in a query: after its question
// mark, or its first wildcard if it has none.
func DecodePatternDelims(pattern string) string {
	from := strings.IndexByte(pattern, '?')
	if from < 0 {
		from = strings.IndexByte(pattern, '*')
	}
	return decodeDelims(pattern, from)
}

// decodeDelims decodes subDelims in s after an index; everywhere else, and if it is negative, s stays as it is.
func decodeDelims(s string, from int) string {
	if from < 0 || strings.IndexByte(s[from:], '%') < 0 {
		return s
	}
	b := append(make([]byte, 0, len(s)), s[:from]...)
	for i := from; i < len(s); i++ {
		if c, ok := Unescape(s[i:]); s[i] == '%' && ok && isSubDelim(c) {
			b = append(b, c)
			i += 2
			continue
		}
		b = append(b, s[i])
	}
	return string(b)
}

// EncodeDelims encodes subDelims in the query of a path.
func EncodeDelims(path string) string {
	i := strings.IndexByte(path, '?')
	b := []byte(path[:max(0, i)])
	for _, c := range []byte(path[max(0, i):]) {
		if isSubDelim(c) {
			b = AppendEscaped(b, c)
		} else {
			b = append(b, c)
		}
	}
	return string(b)
}
