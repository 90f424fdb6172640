package robotstxt

import (
	"testing"
)

const groups = `User-agent: Googlebot
User-agent: FooBot2
Allow: /a
User-agent: *
Allow:
Allow: nowhere
Disallow: /b
User-agent: BarBot
Crawl-delay: 2
User-agent: !
Disallow: /
`

func TestGroup(t *testing.T) {
	f := Parse([]byte(groups), 0)
	for _, test := range []struct {
		tokens      []string
		name, token string
		written     string
		hasAllow    bool
	}{
		{[]string{"GoogleBot"}, "googlebot", "GoogleBot", "Googlebot", true},
		{[]string{"foobot2"}, "foobot2", "foobot2", "FooBot2", true},
		{[]string{"FooBot"}, "foobot", "FooBot", "FooBot", true},
		{[]string{"x", "BARBOT", "Googlebot"}, "barbot", "BARBOT", "BarBot", false},
		{[]string{"x"}, "*", "", "*", false},
		{[]string{"*"}, "*", "", "*", false},
		{[]string{""}, "*", "", "*", false},
		{nil, "*", "", "*", false},
	} {
		g := f.Group(test.tokens...)
		if !g.OK() || g.Name() != test.name || g.Token() != test.token || g.Written() != test.written || g.HasAllow() != test.hasAllow {
			t.Errorf("%q: got %q by %q, written %q, allow %v, ok %v; want %q by %q, written %q, %v",
				test.tokens, g.Name(), g.Token(), g.Written(), g.HasAllow(), g.OK(), test.name, test.token, test.written, test.hasAllow)
		}
	}
}

// TestZeroGroup checks that the methods of the zero Group work.
func TestZeroGroup(t *testing.T) {
	g := Parse([]byte("User-agent: a\nDisallow: /\nCrawl-delay: 3\n"), 0).Group("b")
	if g != (Group{}) || g.OK() || g.Name() != "" || g.Token() != "" || g.HasAllow() {
		t.Errorf("got %+v, want the zero Group", g)
	}
	if _, _, ok := g.CrawlDelay(); ok {
		t.Error("it has a Crawl-delay")
	}
	if _, ok := g.Match("/"); ok {
		t.Error("it has a rule")
	}
}

// TestGroupMatch checks that a rule is returned as it was written.
func TestGroupMatch(t *testing.T) {
	g := Parse([]byte("User-agent: *\nDISSALLOW:  /%7ejoe/$/*  # joe\nallow: /$"), 0).Group()
	for path, want := range map[string]string{
		"/~joe/$/": "Disallow: /%7ejoe/$/*",
		"/":        "Allow: /$",
		"":         "Allow: /$",
	} {
		r, ok := g.Match(path)
		if !ok || r.String() != want {
			t.Errorf("%q: got %q, %v; want %q", path, r, ok, want)
		}
	}
	if r, ok := g.Match("/x"); ok || r != (Rule{}) {
		t.Errorf("got %+v, %v; want no rule", r, ok)
	}
}

// TestDecideReasons checks that a verdict names its group whatever the reason.
func TestDecideReasons(t *testing.T) {
	f := Parse([]byte("User-agent: a\nDisallow: /x\n"), 0)
	for _, test := range []struct {
		path, token string
		allowed     bool
		reason      Reason
		group       string
	}{
		{"/x", "a", false, ByRule, "a"},
		{"/y", "a", true, NoMatch, "a"},
		{"/x", "b", true, NoGroup, ""},
		{"/robots.txt", "a", true, Implicit, "a"},
		{"/robots.txt", "b", true, Implicit, ""},
	} {
		v := f.Decide(test.path, test.token)
		if v.Allowed != test.allowed || v.Reason != test.reason || v.Group.Name() != test.group {
			t.Errorf("%s for %s: got %v, %s, group %q", test.path, test.token, v.Allowed, v.Reason, v.Group.Name())
		}
		if (v.Rule != Rule{}) != (v.Reason == ByRule) {
			t.Errorf("%s for %s: %s with the rule %q", test.path, test.token, v.Reason, v.Rule)
		}
	}
}
