package escape

import (
	"fmt"
	"slices"
	"unicode"
	"unicode/utf8"
)

// JSON escapes in a line of JSON, beyond what JSON asks for, what a terminal would obey
// and what turns a line's direction.
func JSON(line []byte) []byte {
	if !slices.ContainsFunc(line, func(c byte) bool { return c >= 0x7f }) {
		return line
	}
	out := make([]byte, 0, len(line)+64)
	for rest := line; len(rest) > 0; {
		c, n := utf8.DecodeRune(rest)
		switch {
		case c == '\n' || c < utf8.RuneSelf && c != 0x7f || unicode.IsPrint(c):
			out = append(out, rest[:n]...)
		case c > 0xffff:
			hi, lo := surrogates(c)
			out = fmt.Appendf(out, `\u%04x\u%04x`, hi, lo)
		default:
			out = fmt.Appendf(out, `\u%04x`, c)
		}
		rest = rest[n:]
	}
	return out
}

// surrogates are how JSON escapes a character beyond the first plane (RFC 8259, 7).
func surrogates(c rune) (hi, lo rune) {
	c -= 0x10000
	return 0xd800 + c>>10, 0xdc00 + c&0x3ff
}
