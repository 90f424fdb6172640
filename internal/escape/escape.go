// Package escape makes text fit for people's eyes that came from the network.
package escape

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable replaces by "?" what a terminal would obey, what could begin a line
// of its own, and what could turn a line's direction.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}
