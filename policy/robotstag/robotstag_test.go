package robotstag

import (
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"robotsgate/internal/gatetest"
)

// TestArchives checks the parser against testdata/*.txtar. Each archive holds
// tags, one line each: "X-Robots-Tag: …", "Robots-Tag: …" or "meta NAME: …".
// Each line of want is a product token and the rules that bind it, or
// "unknown" and the unknown words.
func TestArchives(t *testing.T) { gatetest.Archives(t, "*.txtar", archive) }

func archive(t *testing.T, ar *txtar.Archive) {
	tags := read(t, string(ar.Files[0].Data))
	unknown := ""
	for line := range strings.Lines(string(ar.Files[1].Data)) {
		token, want, _ := strings.Cut(strings.TrimSpace(line), ":")
		want = strings.TrimSpace(want)
		if token == "unknown" {
			unknown = want
			continue
		}
		if got := strings.Join(Effective(tags.For(token)), " "); got != want {
			t.Errorf("%s: got %q, want %q", token, got, want)
		}
	}
	if got := strings.Join(tags.Unknown, " | "); got != unknown {
		t.Errorf("unknown: got %q, want %q", got, unknown)
	}
}

// read reads the lines of a tags file.
func read(t *testing.T, s string) Tags {
	var robots, x []string
	var metas []Tags
	for line := range strings.Lines(s) {
		line = strings.TrimSuffix(line, "\n")
		if v, ok := strings.CutPrefix(line, "X-Robots-Tag: "); ok {
			x = append(x, v)
		} else if v, ok := strings.CutPrefix(line, "Robots-Tag: "); ok {
			robots = append(robots, v)
		} else if v, ok := strings.CutPrefix(line, "meta "); ok {
			name, content, _ := strings.Cut(v, ": ")
			metas = append(metas, ParseMeta(name, content))
		} else {
			t.Fatalf("no tag: %q", line)
		}
	}
	return Union(append([]Tags{ParseHeader(robots, x)}, metas...)...)
}

func TestRule(t *testing.T) {
	tags := Union(
		ParseHeader([]string{"ExampleBot;noindex"}, []string{"unavailable_after: 2010-06-25, examplebot: max-snippet: 20"}),
		ParseMeta("ROBOTS", "noindex"),
	)
	want := []Rule{
		{Name: "noindex", Source: RobotsTag, Scope: "ExampleBot"},
		{Name: "unavailable_after", Value: "2010-06-25T00:00:00Z", Time: 1277424000, Source: XRobotsTag, Scope: "*"},
		{Name: "max-snippet", Value: "20", Source: XRobotsTag, Scope: "examplebot"},
		{Name: "noindex", Source: Meta, Scope: "ROBOTS"},
	}
	if got := tags.For("EXAMPLEBOT"); !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got, want := tags.For("Other", "ExampleBot"), tags.For("ExampleBot"); !slices.Equal(got, want) {
		t.Errorf("with two tokens: got %+v, want %+v", got, want)
	}
	if got := tags.For(); len(got) != 2 || !got[0].Global() || !got[1].Global() {
		t.Errorf("without a token: got %+v", got)
	}
}

// TestOnce checks that each rule is kept once for a source and scope, the strictest one.
func TestOnce(t *testing.T) {
	tags := ParseHeader(nil, []string{
		"noindex, *: noindex, robots: noindex, ExampleBot: noindex, EXAMPLEBOT: noindex",
		"max-snippet: 5", "max-snippet: 3", "max-snippet: 4",
	})
	var got []string
	for _, r := range tags.Rules {
		got = append(got, r.Scope+":"+r.String())
	}
	if want := []string{"*:noindex", "ExampleBot:noindex", "*:max-snippet=3"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestUnionLeavesItsParts checks that Tags can be shared.
func TestUnionLeavesItsParts(t *testing.T) {
	a := ParseMeta("robots", "max-snippet: 5")
	b := ParseMeta("robots", "max-snippet: 3")
	Union(a, b)
	if got := a.Rules[0].String(); got != "max-snippet=5" {
		t.Errorf("got %s", got)
	}
}

func TestLimit(t *testing.T) {
	member := "x: noarchive, "
	for _, c := range []struct {
		lines []string
		want  string
		cut   bool
	}{
		{[]string{strings.Repeat("a", 8192-8) + ",noindex"}, "noindex", false},
		{[]string{strings.Repeat("a", 8192-7) + ",noindex"}, "", true},
		{[]string{strings.Repeat("a", 8192-8) + ",noindex, nofollow"}, "noindex", true},
		{[]string{strings.Repeat("a", 8192-8) + ",noindex \t , nofollow"}, "noindex", true},
		{[]string{strings.Repeat("a", 8192-8) + ",noindex nofollow"}, "", true},
		{[]string{"noindex", strings.Repeat(member, 1000), "nofollow"}, "noindex", true},
		{[]string{strings.Repeat("a", 8192), "noindex"}, "", true},
		{[]string{strings.Repeat("a", 8192-9), "noindex"}, "noindex", false},
		{[]string{strings.Repeat("a", 8192-8), "noindex"}, "", true},
		// The string of a parameter that is cut is not a rule.
		{[]string{`*;nofollow, *;x="noindex, noarchive` + strings.Repeat("a", 8192) + `";noai`}, "nofollow", true},
		// A quote that isn't closed in time hides no complete member.
		{[]string{`"noindex, ` + strings.Repeat("a", 8192) + `"`}, "noindex", true},
		{[]string{`ExampleBot: "noindex, nofollow,` + strings.Repeat("a", 8192) + `"`}, "nofollow noindex", true},
		{[]string{`noindex, 5" x, nofollow, ` + strings.Repeat("a", 8192)}, "nofollow noindex", true},
		{[]string{`"noindex, \"nofollow\", ` + strings.Repeat("a", 8192) + `"`}, "nofollow noindex", true},
		// A quote that is closed hides its commas.
		{[]string{`*;x="a noindex, ` + strings.Repeat("a", 8192-20) + `";nofollow` + strings.Repeat("a", 20)}, "", true},
	} {
		tags := ParseHeader(nil, c.lines)
		got := strings.Join(Effective(tags.For("ExampleBot")), " ")
		if got != c.want || tags.Truncated != c.cut {
			t.Errorf("%.20q…: got %q and %v, want %q and %v", c.lines, got, tags.Truncated, c.want, c.cut)
		}
	}
	long := []string{strings.Repeat("a", MaxField+1)}
	tags := ParseHeader(long, []string{"noindex"})
	if !tags.Truncated || len(tags.For()) != 1 {
		t.Errorf("the other field: got %+v", tags)
	}
}

// TestKept checks that a hostile field cannot make Tags large.
func TestKept(t *testing.T) {
	for _, field := range []string{
		strings.Repeat("x,", MaxField/2), strings.Repeat("none;", MaxField/5),
		manyScopes(), strings.Repeat("x", MaxField), strings.Repeat(`"`, MaxField), strings.Repeat("'a ", MaxField/3),
	} {
		tags := ParseHeader([]string{field}, []string{field})
		if n := len(tags.Rules); n > 2*MaxField/4 {
			t.Errorf("%.20q…: %d rules", field, n)
		}
		if n := len(tags.Unknown); n > maxUnknown {
			t.Errorf("%.20q…: %d unknown words", field, n)
		}
		for _, w := range tags.Unknown {
			if len(w) > maxUnknownWord {
				t.Errorf("%.20q…: a word of %d bytes", field, len(w))
			}
		}
	}
}
