package robotstag

import (
	"strings"
	"testing"
)

func BenchmarkParseHeader(b *testing.B) {
	for _, bb := range []struct {
		name   string
		robots []string
		x      []string
	}{
		{"Flag", nil, []string{"noindex"}},
		{"Typical", nil, []string{"noindex, nofollow, max-snippet: 20"}},
		{"Scoped", nil, []string{"noarchive, googlebot: noindex, nofollow"}},
		{"StructuredField", []string{"*;nosnippet, ExampleBot;noindex;max-snippet=20"}, nil},
		{"Date", nil, []string{"unavailable_after: Friday, 25-Jun-10 15:00:00 GMT, noindex"}},
		{"None", nil, nil},
		{"Full", nil, []string{strings.Repeat("OtherBot: noindex, ", MaxField/19)}},
		{"Scopes", nil, []string{manyScopes()}},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				ParseHeader(bb.robots, bb.x)
			}
		})
	}
}

// manyScopes is a field with as many scopes as fit.
func manyScopes() string {
	var s strings.Builder
	for i := 0; s.Len() < MaxField-16; i++ {
		s.WriteString("b" + string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676)) + ":none,")
	}
	return s.String()
}

func BenchmarkFor(b *testing.B) {
	tags := ParseHeader(nil, []string{"noarchive, googlebot: noindex, ExampleBot: max-snippet: 5"})
	b.ReportAllocs()
	for b.Loop() {
		tags.For("ExampleBot")
	}
}

func BenchmarkEffective(b *testing.B) {
	rules := ParseHeader(nil, []string{"noarchive, noindex, max-snippet: 5", "max-snippet: 3"}).For("ExampleBot")
	b.ReportAllocs()
	for b.Loop() {
		Effective(rules)
	}
}
