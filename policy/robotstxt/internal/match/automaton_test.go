package match

import (
	"strings"
	"testing"
)

// FuzzAutomaton checks that an automaton finds a string where strings.Index does, and
// stays within its bounds of states and edges.
func FuzzAutomaton(f *testing.F) {
	f.Add("abcbcabcbbcab", "bc", uint(3))
	f.Add("/ababab", "abab", uint(2))
	f.Fuzz(func(t *testing.T, text, s string, from uint) {
		a := newAutomaton(text)
		if len(a.states) > 2*len(text)+1 || len(a.edges) > 3*len(text)+1 {
			t.Errorf("%q: %d states, %d edges", text, len(a.states), len(a.edges))
		}
		at := int(from % uint(len(text)+1))
		for _, s := range []string{s, text[at:], text[at/2 : at]} {
			if got, _ := a.index(at, s); got != strings.Index(text[at:], s) {
				t.Errorf("%q after %d of %q: got %d, want %d", s, at, text, got, strings.Index(text[at:], s))
			}
		}
	})
}
