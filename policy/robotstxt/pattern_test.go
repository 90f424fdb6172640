package robotstxt

import (
	"strings"
	"testing"

	"robotsgate/internal/gatetest"
)

// matchesLikeRule checks that a pattern matches and is measured as that of a Disallow line.
func matchesLikeRule(t *testing.T, text, path string) {
	t.Helper()
	p := NewPattern(text)
	m := new(NewEffort()).PathMatcher(path)
	rule, ok := Parse([]byte("User-agent: *\nDisallow: "+text), 0).Group().Match(path)
	if got := m.Matches(p); got != ok {
		t.Errorf("%q on %q: got %v, a rule gives %v", text, path, got, ok)
	}
	if !ok {
		return
	}
	if rule.Pattern != text {
		t.Fatalf("%q is %q as a rule", text, rule.Pattern)
	}
	// Of an Allow with as many octets and a Disallow the Allow decides; with one more the Disallow would.
	for _, test := range []struct {
		octets int
		allow  bool
	}{{p.Octets(), true}, {p.Octets() - 1, false}} {
		if test.octets < 1 {
			continue
		}
		robots := "User-agent: *\nDisallow: " + text + "\nAllow: " + strings.Repeat("*", test.octets)
		if v := Parse([]byte(robots), 0).Decide(path); v.Allowed != test.allow && v.Reason == ByRule {
			t.Errorf("%q has %d octets; with an Allow of %d: got allowed %v", text, p.Octets(), test.octets, v.Allowed)
		}
	}
}

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
		if test.text != "" {
			matchesLikeRule(t, test.text, test.path)
		}
	}
}

// FuzzPattern asserts that a pattern is to a path what it is as a rule.
func FuzzPattern(f *testing.F) {
	f.Add("/a*b$", "/axb")
	f.Add("/*?u=http:*", "/x?u=http%3A")
	f.Add("*/%2f$x", "/a/%2F$x")
	f.Fuzz(func(t *testing.T, text, path string) {
		if text = strings.Trim(text, " \t\v\f"); text == "" || strings.ContainsAny(text, "#\r\n\x00") {
			return // not what a line of robots.txt can have
		}
		matchesLikeRule(t, text, path)
	})
}

// TestPathMatcherExhausted checks that comparing patterns takes a bounded time, that patterns which
// could not be compared count as matching, and that honest ones never get there.
func TestPathMatcherExhausted(t *testing.T) {
	path := "/" + strings.Repeat("abcxbcdx", 8<<10)
	hostile := NewPattern("/*abcd") // its parts are in the path, so that all of the path must be searched
	m := new(NewEffort()).PathMatcher(path)
	before := gatetest.CPUTime(t)
	for range 16 << 10 {
		if m.Matches(hostile) && !m.Exhausted() {
			t.Fatal("a pattern matches that does not")
		}
	}
	if took := gatetest.CPUTime(t) - before; took.Seconds() > 1 {
		t.Errorf("took %v", took)
	}
	if !m.Exhausted() || !m.Matches(hostile) {
		t.Error("the steps are not bounded, or a pattern that was not compared does not match")
	}
	m = new(NewEffort()).PathMatcher(path[:1000])
	honest := NewPattern("/*.pdf$")
	for range 16 << 10 {
		m.Matches(honest)
	}
	if m.Exhausted() {
		t.Error("a simple pattern, often repeated, has exhausted the matcher")
	}
}
