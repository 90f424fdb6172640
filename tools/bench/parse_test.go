// Package bench compares parts of robotsgate with what others do in their place.
package bench

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	temoto "github.com/temoto/robotstxt"

	"robotsgate/policy/robotstxt"
)

// largeFile returns a robots.txt of 500 KiB with 20,000 rules for everyone, in no
// order, every tenth with a wildcard.
func largeFile() []byte {
	const rules, size = 20_000, 500 << 10
	rng := rand.New(rand.NewPCG(9309, rules))
	words := []string{"shop", "user", "cart", "img", "wp-admin", "search", "tag", "api", "page", "private", "feed", "print"}
	word := func() string { return words[rng.IntN(len(words))] }
	var b strings.Builder
	b.WriteString("User-agent: *\n")
	for i := range rules {
		switch i % 10 {
		case 0:
			fmt.Fprintf(&b, "Disallow: /%s/*.%s%d$\n", word(), word(), rng.IntN(rules))
		case 1:
			fmt.Fprintf(&b, "Allow: /%s/%d\n", word(), rng.IntN(rules))
		default:
			fmt.Fprintf(&b, "Disallow: /%s/%s%d/\n", word(), word(), rng.IntN(rules))
		}
	}
	for b.Len() < size {
		b.WriteByte('#')
	}
	return []byte(b.String())[:size]
}

// BenchmarkParse compiles the same large file with this parser and with
// github.com/temoto/robotstxt.
func BenchmarkParse(b *testing.B) {
	data := largeFile()
	b.Run("robotsgate", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		for b.Loop() {
			robotstxt.Parse(data, 0)
		}
	})
	b.Run("temoto", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := temoto.FromBytes(data); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkDecide asks both about a path that none of the rules is about.
func BenchmarkDecide(b *testing.B) {
	data := largeFile()
	const path = "/a/path/that/matches/nothing.html"
	b.Run("robotsgate", func(b *testing.B) {
		f := robotstxt.Parse(data, 0)
		b.ReportAllocs()
		for b.Loop() {
			f.Decide(path, "ExampleBot")
		}
	})
	b.Run("temoto", func(b *testing.B) {
		f, err := temoto.FromBytes(data)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			f.TestAgent(path, "ExampleBot")
		}
	})
}
