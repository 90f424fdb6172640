package glob

import (
	"regexp"
	"strings"
	"testing"

	"robotsgate/policy/canonical"
)

func TestText(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"", "", true},
		{"", "x", false},
		{"*", "", true},
		{"*", "anything at all", true},
		{"ExampleBot", "examplebot", true},
		{"ExampleBot", "ExampleBot/1.0", false},
		{"examplebot*", "ExampleBot/1.0", true},
		{"*bot*", "Mozilla/5.0 (compatible; ExampleBOT/2.1)", true},
		{"*bot*", "curl/8.0", false},
		{"a*b*c", "abc", true},
		{"a*b*c", "axxbyyc", true},
		{"a*b*c", "ac", false},
		{"ab*ba", "aba", false}, // the two ends may not share a character
		{"a*a", "a", false},
		{"*a*a*", "ba", false},
		{"a?c", "abc", false}, // only * is special
		{"a?c", "A?C", true},
		{"[ab]", "a", false},
		{"**", "x", true},
		{"k", "\u212a", false}, // a Kelvin sign is not a k
	} {
		if got := Text(c.pattern).Match(c.text); got != c.want {
			t.Errorf("Text(%q).Match(%q): got %v, want %v", c.pattern, c.text, got, c.want)
		}
	}
}

func TestZero(t *testing.T) {
	var g Glob
	if !g.Match("") || g.Match("x") || g.String() != "" {
		t.Error("the zero Glob must match the empty string only")
	}
}

func TestHost(t *testing.T) {
	for _, c := range []struct {
		pattern, canonical string
		matches, not       []string
	}{
		{"Example.COM", "example.com", []string{"example.com", "EXAMPLE.com", "example.com."}, []string{"www.example.com", "example.com.evil", ""}},
		{"*.example.com", "*.example.com", []string{"a.example.com", "a.b.example.com", "A.Example.com."}, []string{"example.com", "badexample.com", "a.example.com.evil"}},
		{"example.com.", "example.com", []string{"example.com"}, nil},
		{"*", "*", []string{"x", "10.0.0.1", "::1"}, nil},
		{"10.0.*", "10.0.*", []string{"10.0.0.1"}, []string{"10.1.0.0"}},
		{"api-*.example.*", "api-*.example.*", []string{"api-1.example.org"}, []string{"api.example.org"}},
		{"_dmarc.example.com", "_dmarc.example.com", nil, nil},
		{"BÜCHER.example", "xn--bcher-kva.example", []string{"xn--bcher-kva.example"}, nil},
		{"*.bücher.example", "*.xn--bcher-kva.example", []string{"www.xn--bcher-kva.example"}, nil},
		{"straße.example", "xn--strae-oqa.example", nil, nil},
		{"例え。テスト", "xn--r8jz45g.xn--zckzah", nil, nil},
		{"10.0.0.1", "10.0.0.1", []string{"10.0.0.1"}, nil},
		{"10.*", "10.*", []string{"10.0.0.1"}, []string{"110.0.0.1"}},
		{"*.1", "*.1", []string{"10.0.0.1"}, nil},
		{"1*.0.1", "1*.0.1", []string{"10.0.0.1"}, nil},
		{"0xcafe.example", "0xcafe.example", nil, nil},
		{"[::1]", "::1", []string{"::1"}, nil},
		{"2001:DB8:0::1", "2001:db8::1", []string{"2001:db8::1"}, nil},
		{"::ffff:127.0.0.2", "127.0.0.2", []string{"127.0.0.2"}, nil},
		{"[::FFFF:7f00:2]", "127.0.0.2", []string{"127.0.0.2"}, nil},
		{"2001:DB8::*", "2001:db8::*", []string{"2001:db8::1", "2001:db8::"}, nil},
		{"::*", "::*", []string{"::1", "::"}, []string{"1::"}},
		{"*::", "*::", []string{"2001:db8::"}, nil},
		{"a-.example", "a-.example", nil, nil},
		{"-*.example", "-*.example", []string{"-a.example"}, nil},
		{"2001:db8:*", "2001:db8:*", []string{"2001:db8::1"}, []string{"2001:db9::1"}},
	} {
		g, err := Host(c.pattern)
		if err != nil {
			t.Errorf("Host(%q): %v", c.pattern, err)
			continue
		}
		if g.String() != c.canonical {
			t.Errorf("Host(%q): got %s, want %s", c.pattern, g, c.canonical)
		}
		for _, host := range c.matches {
			if !g.Match(host) {
				t.Errorf("%s should match %q", g, host)
			}
		}
		for _, host := range c.not {
			if g.Match(host) {
				t.Errorf("%s should not match %q", g, host)
			}
		}
	}
}

func TestHostRefuses(t *testing.T) {
	for _, c := range []struct{ pattern, want string }{
		{"", "empty"},
		{"a b", "' '"},
		{"https://example.com", "scheme"},
		{"example.com/path", "'/'"},
		{"10.0.0.0/8", "'/'"},
		{"user@example.com", "'@'"},
		{"example.com:443", "port"},
		{"*:443", "':'"},
		{"[::1]:443", "port"},
		{"fe80::1%eth0", "zone"},
		{".example.com", "empty"},
		{"*.", "empty"},
		{"www.*.", "empty"},
		{"*..", "empty"},
		{"a..b", "empty"},
		{".", "empty"},
		{"exa?mple.com", "'?'"},
		{"bü*.example", "'ü'"},
		{"10.0.0", "IPv4"},
		{"256.1.1.1", "IPv4"},
		{"0x7f.0.0.1", "IPv4"},
		{"127.0.0.0x1", "IPv4"},
		{"010.0.0.1", "IPv4"},
		{"2130706433", "IPv4"},
		{strings.Repeat("a", 64) + ".example", "63"},
		{strings.Repeat("a.", 130) + "example", "253"},
	} {
		g, err := Host(c.pattern)
		if err == nil {
			t.Errorf("Host(%q): got %s, want an error", c.pattern, g)
		} else if !strings.Contains(err.Error(), c.want) {
			t.Errorf("Host(%q): got %q, want something with %q", c.pattern, err, c.want)
		}
	}
}

// Many stars over a long text that almost matches: a backtracking matcher
// would not come back.
func TestManyStarsAreLinear(t *testing.T) {
	g := Text(strings.Repeat("a*", 5000) + "b")
	text := strings.Repeat("a", 200_000)
	if g.Match(text) {
		t.Error("should not match")
	}
}

func FuzzText(f *testing.F) {
	f.Add("a*b*c", "abc")
	f.Add("*.x", "y.X")
	f.Add("aa*a", "aaa")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		// The reference: the same pattern as a regular expression over bytes,
		// each of which is spelled as one Latin-1 rune.
		latin := func(s string) string {
			var b strings.Builder
			for i := range len(s) {
				b.WriteRune(rune(s[i]))
			}
			return b.String()
		}
		expr := strings.ReplaceAll(regexp.QuoteMeta(latin(canonical.Lower(pattern))), `\*`, `.*`)
		re, err := regexp.Compile(`(?s)\A` + expr + `\z`)
		if err != nil {
			t.Skip()
		}
		if got, want := Text(pattern).Match(text), re.MatchString(latin(canonical.Lower(text))); got != want {
			t.Errorf("Text(%q).Match(%q): got %v, want %v", pattern, text, got, want)
		}
	})
}

func BenchmarkMatch(b *testing.B) {
	g, err := Host("*.partner.example")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		g.Match("images.static.partner.example")
	}
}
