package robotstxt

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// randomFile returns a robots.txt with n rules for *, in no order, about
// 25 bytes each, every tenth with a wildcard.
func randomFile(n int) []byte {
	rng := rand.New(rand.NewPCG(9309, uint64(n)))
	words := []string{"shop", "user", "cart", "img", "wp-admin", "search", "tag", "api", "page", "private", "feed", "print"}
	word := func() string { return words[rng.IntN(len(words))] }
	var b strings.Builder
	b.WriteString("User-agent: *\n")
	for i := range n {
		switch i % 10 {
		case 0:
			fmt.Fprintf(&b, "Disallow: /%s/*.%s%d$\n", word(), word(), rng.IntN(n))
		case 1:
			fmt.Fprintf(&b, "Allow: /%s/%d\n", word(), rng.IntN(n))
		default:
			fmt.Fprintf(&b, "Disallow: /%s/%s%d/\n", word(), word(), rng.IntN(n))
		}
	}
	return []byte(b.String())
}

// hostileFile returns a robots.txt with n rules for which a backtracking matcher would take
// exponential time.
func hostileFile(n int) []byte {
	return []byte("User-agent: *\n" + strings.Repeat("Disallow: /"+strings.Repeat("*a", 18)+"*b\n", n))
}

func BenchmarkParse(b *testing.B) {
	for _, n := range []int{10, 1000, 20000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			data := randomFile(n)
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				Parse(data, 0)
			}
		})
	}
}

func BenchmarkDecide(b *testing.B) {
	for _, n := range []int{10, 1000, 10000} {
		f := Parse(randomFile(n), 0)
		for name, path := range map[string]string{
			"match":   "/wp-admin/page/of/something.html?q=1",
			"nomatch": "/a/path/that/matches/nothing.html",
			"near":    "/shop/user77/index.html",
		} {
			b.Run(fmt.Sprintf("%d/%s", n, name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					f.Decide(path, "ExampleBot")
				}
			})
		}
	}
}

// BenchmarkDecideStars has nothing but rules that begin with a star.
func BenchmarkDecideStars(b *testing.B) {
	for _, n := range []int{10, 10000} {
		var robots strings.Builder
		robots.WriteString("User-agent: *\n")
		for i := range n {
			fmt.Fprintf(&robots, "Disallow: /*/private-%d\nDisallow: /*?id=%d$\n", i, i)
		}
		f := Parse([]byte(robots.String()), 0)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f.Decide("/a/path/that/matches/nothing-4711.html", "ExampleBot")
			}
		})
	}
}

func BenchmarkDecideHostile(b *testing.B) {
	f := Parse(hostileFile(10000), 0)
	path := "/" + strings.Repeat("a", 2000)
	b.ReportAllocs()
	for b.Loop() {
		f.Decide(path, "ExampleBot")
	}
}
