package logtext

import "unicode/utf8"

// maxEscaped is how many bytes a character takes in a log at most: a pair of \u escapes in JSON.
const maxEscaped = 12

// Fit returns how many of the first bytes of a text take at most limit bytes in a log, and what they take
// there: more than they are, if characters are escaped. It does not split a character.
func Fit(s string, limit int) (n, size int) {
	for i, r := range s {
		next := size + escapedSize(r)
		if next > limit {
			return i, size
		}
		size = next
	}
	return len(s), size
}

func escapedSize(r rune) int {
	switch {
	case r == '"' || r == '\\':
		return 2
	case r >= ' ' && r <= '~':
		return 1
	case !unprintable(r):
		return utf8.RuneLen(r)
	case r > 0xffff:
		return maxEscaped
	}
	return len(`\u0000`)
}

// Cut returns a text that takes at most limit bytes in a log: s, or its beginning and "…".
func Cut(s string, limit int) string {
	if len(s) <= limit/maxEscaped {
		return s
	}
	if n, _ := Fit(s, limit); n == len(s) {
		return s
	}
	n, _ := Fit(s, limit-len("…"))
	return s[:n] + "…"
}
