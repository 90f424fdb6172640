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
