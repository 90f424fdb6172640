// Package logtext makes text from the network safe to print, in a log or on a terminal: it escapes what
// would control a terminal, begin a line, or change the direction of a line, and cuts it. [Minute] bounds how often one
// line is logged.
package logtext

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Printable escapes all but letters, marks, numbers, punctuation, symbols and the
// ASCII space, as Go's string literals do: U+202E becomes \u202e. A byte that is not
// UTF-8 becomes \ufffd.
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

// JSON escapes, in a line of JSON, the characters from U+007F on that Printable
// escapes. Package json has escaped those before.
func JSON(line []byte) []byte {
	if !slices.ContainsFunc(line, func(c byte) bool { return c >= 0x7f }) {
		return line
	}
	out := make([]byte, 0, len(line)+64)
	for rest := line; len(rest) > 0; {
		c, n := utf8.DecodeRune(rest)
		if c == '\n' || c < utf8.RuneSelf && c != 0x7f || unicode.IsPrint(c) {
			out = append(out, rest[:n]...)
		} else {
			for _, unit := range utf16.AppendRune(nil, c) { // RFC 8259, section 7
				out = fmt.Appendf(out, `\u%04x`, unit)
			}
		}
		rest = rest[n:]
	}
	return out
}

// maxShort bounds what Short returns, in characters before the escaping.
const maxShort = 200

// Short is Printable of the beginning of a text.
func Short(s string) string {
	n := 0
	for i := range s {
		if n++; n > maxShort {
			s = s[:i] + "…"
			break
		}
	}
	return Printable(s)
}

// Strip removes what Printable escapes. White space becomes a space.
func Strip(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case !unprintable(r):
			return r
		case unicode.IsSpace(r):
			return ' '
		}
		return -1
	}, s)
}
