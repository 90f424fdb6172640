package robotstag

import (
	"slices"
	"strings"
	"testing"
	"time"
)

var fuzzSeeds = []string{
	"noindex\nnofollow, max-snippet: 20",
	"*;nosnippet, ExampleBot;noindex;max-snippet=20\nOtherBot=noindex, nosnippet; nofollow",
	"unavailable_after: Friday, 25-Jun-10 15:00:00 GMT, noindex\nExampleBot: unavailable_after: 2010-06-25T15:00:00+01:00",
	"*;x=\"a, b\";noindex\n\"noindex\", 'nofollow'",
	"ExampleBot: \"noindex, nofollow\"\n(noarchive)",
}

// FuzzParseHeader asserts that parsing is a union: neither the order of the lines nor their
// field matters, and a further line removes no rule.
func FuzzParseHeader(f *testing.F) {
	for _, s := range fuzzSeeds {
		f.Add(s, "ExampleBot")
	}
	f.Fuzz(func(t *testing.T, field, token string) {
		lines := strings.Split(field, "\n")
		tags := ParseHeader(nil, lines)
		if tags.Truncated {
			return // what fits depends on the order
		}
		rules := tags.For(token)
		got := Effective(rules)

		back := slices.Clone(lines)
		slices.Reverse(back)
		if g := Effective(ParseHeader(nil, back).For(token)); !slices.Equal(g, got) {
			t.Errorf("backwards: got %q, want %q", g, got)
		}
		if g := Effective(ParseHeader(lines[:1], lines[1:]).For(token)); !slices.Equal(g, got) {
			t.Errorf("in both fields: got %q, want %q", g, got)
		}
		var parts []Tags
		for _, line := range lines {
			parts = append(parts, ParseHeader(nil, []string{line}))
		}
		if g := Effective(Union(parts...).For(token)); !slices.Equal(g, got) {
			t.Errorf("line by line: got %q, want %q", g, got)
		}
		for i, part := range parts {
			for _, r := range part.For(token) {
				if !slices.ContainsFunc(rules, func(s Rule) bool { return keyOf(s) == keyOf(r) && !stricter(r, s) }) {
					t.Errorf("line %d: %v is missing from the union", i, r)
				}
			}
		}
		check(t, tags)
	})
}

// FuzzParseMeta asserts that a meta binds the crawlers that it names and no others.
func FuzzParseMeta(f *testing.F) {
	for _, s := range fuzzSeeds {
		f.Add("robots", s)
		f.Add("ExampleBot", s)
	}
	f.Fuzz(func(t *testing.T, name, content string) {
		tags := ParseMeta(name, content)
		check(t, tags)
		for _, r := range tags.Rules {
			if r.Source != Meta || !strings.Contains(name, r.Scope) {
				t.Errorf("%q: got %+v", name, r)
			}
		}
		if n := len(tags.For(product(strings.TrimSpace(name)))); n != len(tags.Rules) {
			t.Errorf("%q: %d of %d rules bind", name, n, len(tags.Rules))
		}
	})
}

// check asserts the invariants of all Tags.
func check(t *testing.T, tags Tags) {
	for i, r := range tags.Rules {
		e := lookup(r.Name)
		hasValue := e.kind == number || e.kind == size || e.kind == date
		if e.name != r.Name || e.kind != flag && !hasValue || hasValue != (r.Value != "") || r.Scope == "" {
			t.Errorf("not canonical: %+v", r)
		}
		if e.kind == date {
			if d, err := time.Parse(time.RFC3339, r.Value); err != nil || d.Unix() != r.Time {
				t.Errorf("%+v: %v", r, err)
			}
		}
		for _, s := range tags.Rules[:i] {
			if keyOf(r) == keyOf(s) {
				t.Errorf("twice: %+v and %+v", s, r)
			}
		}
	}
	words := Effective(tags.Rules)
	if !slices.IsSorted(words) || len(slices.Compact(slices.Clone(words))) != len(words) {
		t.Errorf("not a sorted set: %q", words)
	}
}

// FuzzReadDate asserts that a date reads the same when written as RFC 3339,
// RFC 850 or in a structured field, and that a comma ends it.
func FuzzReadDate(f *testing.F) {
	f.Add("Friday, 25-Jun-10 15:00:00 GMT")
	f.Add("2010-06-25T15:00:00.5+01:00")
	f.Add("@1277478000")
	f.Fuzz(func(t *testing.T, s string) {
		d, n, ok := readDate(s)
		if n < 0 || n > len(s) {
			t.Fatalf("%q: read %d bytes", s, n)
		}
		if !ok {
			return
		}
		again, _, ok := readDate(s[:n] + ", noindex")
		if !ok || !again.Equal(d) {
			t.Errorf("%q: got %v, want %v", s[:n], again, d)
		}
		for _, layout := range []string{time.RFC3339, "Mon, 02 Jan 2006 15:04:05 GMT", "Monday, 02-Jan-2006 15:04:05 GMT"} {
			if again, _, ok := readDate(d.Format(layout)); !ok || !again.Equal(d) {
				t.Errorf("%q as %q: got %v", s, d.Format(layout), again)
			}
		}
	})
}
