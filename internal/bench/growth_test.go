//go:build unix

package bench

import (
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
)

// inRotation is the number of origins that are requested in turn, each with an address
// of loopback.
const inRotation = 100_000

// origin returns the n-th of these origins.
func (o *origins) origin(n int) string { return originAt(n, o.few) }

// originAt returns the n-th origin with a port.
func originAt(n int, port string) string {
	return fmt.Sprintf("http://127.%d.%d.%d:%s", 1+n>>16, n>>8&0xff, n&0xff, port)
}

// each returns requests to the n-th origin for a path.
func (o *origins) each(path string) func(n int) []byte {
	return heads(func(n int) string { return o.origin(n) + path })
}

// rotating returns requests to one origin after the other, which go on where another
// run has ended. They are made beforehand, so that clients do the same work as for one
// origin.
func (o *origins) rotating(path string) func(n int) []byte {
	all := make([][]byte, inRotation)
	for n := range all {
		all[n] = o.each(path)(n)
	}
	var next atomic.Int64
	return func(int) []byte { return all[(next.Add(1)-1)%inRotation] }
}

// BenchmarkGrowth compares the gate with itself: with many rules and few, and with many
// origins in turn and one, with memory for all of them and for a tenth. The store has
// all of them from the beginning, so none may be fetched.
func BenchmarkGrowth(b *testing.B) {
	o, program, dir := newOrigins(b), buildGate(b), b.TempDir()
	fillStore(b, filepath.Join(dir, "data"), inRotation, o.origin)
	gate := func(b *testing.B, dir, config string) *gate {
		g := serving(b, exec.Command(program, "serve", "-c", o.writeConfig(b, dir, config)), "")
		b.Cleanup(g.stop)
		return g
	}
	get := func(port, path string, status int) *load { return plain(status, same("http://127.0.0.2:"+port+path)) }
	b.Run("10000-rules", func(b *testing.B) {
		var sets [gates][]contender
		for i := range sets {
			g := gate(b, b.TempDir(), everything)
			sets[i] = []contender{
				{&g.proxy, get(o.few, "/1k", http.StatusOK), "10-rules"},
				{&g.proxy, get(o.many, "/1k", http.StatusOK), "10000-rules"},
			}
		}
		compare(b, aLongTurn, sets[:]...)
	})
	for name, config := range map[string]string{"100000-origins": everything, "100000-origins-small-cache": "robots: {cache_bytes: 49MiB}\nlog: {audit: audit.jsonl}\n"} {
		b.Run(name, func(b *testing.B) {
			g := gate(b, dir, config)
			all := plain(http.StatusForbidden, o.rotating("/no/1k"))
			refused := get(o.few, "/no/1k", http.StatusForbidden)
			meet(b, g, o.each("/no/1k"), 0, inRotation)
			compare(b, aLongTurn, []contender{
				{&g.proxy, refused, "one-origin"},
				{&g.proxy, all, "many-origins"},
			})
			const one = 1 // 127.0.0.2 is not in the store
			if n := g.metric(b, "robotsgate_robots_fetches_total"); n > one {
				b.Errorf("%v robots.txt files were fetched", n)
			}
			b.ReportMetric(g.metric(b, "robotsgate_cache_entries"), "in-memory")
		})
	}
}
