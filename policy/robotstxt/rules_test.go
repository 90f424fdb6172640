package robotstxt

import (
	"slices"
	"testing"
)

// TestRules lists the rules of a group, from all its sections, and the names.
func TestRules(t *testing.T) {
	f := Parse([]byte("User-agent: B\nUser-agent: a\nDisallow: /x\nAllow: /y?q=/z\n\nUser-agent: *\nDisallow: /q\n\nUser-agent: a\nAllow: /*w$\n"), 0)
	for token, want := range map[string][]int{"A": {3, 4, 10}, "b": {3, 4}, "other": {7}} {
		var lines []int
		for r := range f.Group(token).Rules() {
			lines = append(lines, r.Line)
		}
		if slices.Sort(lines); !slices.Equal(lines, want) {
			t.Errorf("%s: lines %v, want %v", token, lines, want)
		}
	}
	if got := slices.Collect(f.Names()); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("names %v", got)
	}
	for r := range (Group{}).Rules() {
		t.Errorf("no group has %v", r)
	}
}
