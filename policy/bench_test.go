package policy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dgraph-io/ristretto/v2"

	"robotsgate/policy/robotstxt"
)

// BenchmarkRules decides by compiled rules, beside the least that any decision
// of the gate costs: to get the rules out of the cache.
func BenchmarkRules(b *testing.B) {
	b.Run("ristretto Get", func(b *testing.B) {
		cache, err := ristretto.NewCache(&ristretto.Config[string, *entry]{
			NumCounters: 1000, MaxCost: 1000, BufferItems: 64,
		})
		if err != nil {
			b.Fatal(err)
		}
		defer cache.Close()
		const origin = "https://www.example.com"
		cache.Set(origin, new(entry), 1)
		cache.Wait()
		if _, ok := cache.Get(origin); !ok {
			b.Fatal("the cache did not take it")
		}
		b.ReportAllocs()
		for b.Loop() {
			cache.Get(origin)
		}
	})
	for _, n := range []int{10, 10_000} {
		b.Run(fmt.Sprint(n, " rules"), func(b *testing.B) {
			var robots strings.Builder
			robots.WriteString("User-agent: *\n")
			for i := range n {
				fmt.Fprintf(&robots, "Disallow: /shop/private-%d/\n", i)
			}
			file := robotstxt.Parse([]byte(robots.String()), 0)
			b.ReportAllocs()
			for b.Loop() {
				if file.Decide("/shop/private-7/index.html?q=1", "ExampleBot").Allowed {
					b.Fatal("allowed")
				}
			}
		})
	}
}
