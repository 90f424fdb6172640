package robotstxt

import (
	"testing"
)

func TestPattern(t *testing.T) {
	for _, test := range []struct {
		text, path string
		matches    bool
		octets     int
	}{
		{"/", "/a", true, 1},
		{"/", "", true, 1},
		{"/a", "/b", false, 2},
		{"", "/", false, 0},
		{"a", "/a", false, 1},
		{"*a", "/ba", true, 2},
		{"/*.pdf$", "/x.pdf", true, 7},
		{"/*.pdf$", "/x.pdf?y", false, 7},
		{"/a$b", "/a$b", true, 4},
		{"/é", "/%c3%a9", true, 7},
		{"/%61", "/a", true, 2},
		{"/?u=http:", "/?u=http%3A//x", true, 9},
		{"/?u=http%3A", "/?u=http://x", true, 11},
	} {
		p := NewPattern(test.text)
		if got := new(NewEffort()).PathMatcher(test.path).Matches(p); got != test.matches || p.Octets() != test.octets {
			t.Errorf("%q on %q: got %v, %d octets; want %v, %d", test.text, test.path, got, p.Octets(), test.matches, test.octets)
		}
	}
}
