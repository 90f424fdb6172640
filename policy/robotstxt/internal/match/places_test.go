package match

import (
	"strings"
	"testing"
)

// FuzzPlaceTable checks that a table finds a string where strings.Index does.
func FuzzPlaceTable(f *testing.F) {
	f.Add("abcbcabcbbcab", "bc", uint(3))
	f.Add("/ababab", "abab", uint(2))
	f.Add("/ababab", "ababb", uint(0))
	f.Fuzz(func(t *testing.T, text, s string, from uint) {
		table := newPlaceTable(text)
		at := int(from % uint(len(text)+1))
		for _, s := range []string{s, text[at:], text[at/2 : at], text[at:] + "x"} {
			if got, _ := table.index(at, s); got != strings.Index(text[at:], s) {
				t.Errorf("%q after %d of %q: got %d, want %d", s, at, text, got, strings.Index(text[at:], s))
			}
		}
	})
}
