// Package escape makes text fit for people's eyes that came from the network.
package escape

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable escapes, as Go's string literals do, what a terminal would obey, what could begin
// a line of its own, and what is invisible or could turn a line's direction: U+202E becomes
// \u202e. Letters, marks, numbers, punctuation, symbols and the ASCII space stay. A byte that is
// not UTF-8 becomes \ufffd, the character that JSON has for it.
func Printable(s string) string {
	if !strings.ContainsFunc(s, unprintable) {
		return s
	}
	b := make([]byte, 0, len(s)+32)
	for _, r := range s {
		if unprintable(r) {
			quoted := strconv.QuoteRuneToASCII(r)
			b = append(b, quoted[1:len(quoted)-1]...)
			continue
		}
		b = utf8.AppendRune(b, r)
	}
	return string(b)
}

func unprintable(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }
