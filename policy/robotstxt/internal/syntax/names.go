package syntax

import "strings"

// TokenNames returns the names that the value of a User-agent line gives: the longest
// prefix that is valid in a product token, and the shorter one without digits that
// Google's parser reads, if it differs. Sites write for both.
func TokenNames(value string) (long, short string) {
	n, letters := 0, -1
	for n < len(value) && IsTokenByte(value[n]) {
		if letters < 0 && '0' <= value[n] && value[n] <= '9' {
			letters = n
		}
		n++
	}
	if letters < 0 {
		return value[:n], ""
	}
	return value[:n], value[:letters]
}

// IsEveryone reports whether the value of a User-agent line means all crawlers.
func IsEveryone(value string) bool {
	return strings.HasPrefix(value, "*") && (len(value) == 1 || IsSpace(value[1]))
}

// IsTokenByte reports whether c may be part of a product token.
func IsTokenByte(c byte) bool {
	letter := c | 0x20
	return 'a' <= letter && letter <= 'z' || '0' <= c && c <= '9' || c == '_' || c == '-'
}
