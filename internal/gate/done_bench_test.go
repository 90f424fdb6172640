//go:build unix

package gate

import (
	"crypto/ed25519"
	"io"
	"log/slog"
	"net/netip"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"robotsgate/internal/audit"
	"robotsgate/internal/evidence"
	"robotsgate/internal/keyfile"
	"robotsgate/internal/metrics"
	"robotsgate/internal/overview"
	"robotsgate/policy"
	"robotsgate/policy/robotstag"
	"robotsgate/proxy"
)

// BenchmarkDone measures the cost of a request that is over, with all later work of the
// audit log: as fast as possible, without a disk, and at the rate of a busy gate, where
// little can be batched. Subtract "nothing", the cost of the waiting.
func BenchmarkDone(b *testing.B) {
	for name, x := range map[string]*proxy.Record{"plain": over(nil), "page": over([]string{"noarchive, max-snippet: 20"}), "nothing": nil} {
		b.Run(name+"/at once", func(b *testing.B) {
			if x == nil {
				b.Skip()
			}
			g := recording(b, "-")
			before := used(b)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					g.done(x)
				}
			})
			g.report(b, before)
		})
		b.Run(name+"/20000 a second", func(b *testing.B) {
			g := recording(b, filepath.Join(b.TempDir(), "audit.jsonl"))
			const clients, rate = 16, 20_000
			var left atomic.Int64
			left.Store(int64(b.N))
			before := used(b)
			b.ReportAllocs()
			var all sync.WaitGroup
			for range clients {
				all.Go(func() {
					for next := time.Now(); left.Add(-1) >= 0; {
						if x != nil {
							g.done(x)
						}
						next = next.Add(clients * time.Second / rate)
						time.Sleep(time.Until(next))
					}
				})
			}
			all.Wait()
			g.report(b, before)
		})
	}
}

// over returns a request that is over, with these tags in its response.
func over(tags []string) *proxy.Record {
	r := policy.Robots{MaxAge: time.Hour, MaxBytes: 1 << 20}
	target := policy.Target{Scheme: "http", Host: "127.0.0.1:8080", Path: "/catalogue/item?id=17&page=2"}
	d := r.Judge(200, []byte("User-agent: *\nDisallow: /private/\nAllow: /catalogue/\n"), target, []string{"ExampleBot"})
	d.URL, d.Asked, d.Robots.From = target.Origin()+"/robots.txt", time.Now(), policy.InMemory
	d.Robots.At = d.Asked
	x := &proxy.Record{
		ID: "ABCDEFGHIJKLMNOPQRSTUVWXYZ", Start: time.Now(), Client: netip.MustParseAddr("192.0.2.1"), Method: "GET", URL: target.String(), Origin: target.Origin(),
		Crawler: "examplebot", Decision: &d, Head: proxy.Head{State: "skipped", Why: "type"}, Status: 200, Bytes: 1024,
		Config: policy.Digest(""), Duration: 1_234_567, Decided: 12_345, Sent: 23_456, Upstream: 1_134_567, Answered: 1_200_000,
	}
	if tags != nil {
		x.Tags = robotstag.ParseHeader(nil, tags).For("ExampleBot")
		x.Head = proxy.Head{State: "complete"}
	}
	return x
}

// recording is the part of a gate that records requests.
func recording(b *testing.B, file string) *Gate {
	e := evidence.Options{Name: "log.example", Key: keyfile.New(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))), Dir: b.TempDir()}
	log, err := audit.Open(audit.Options{Config: audit.Config{File: file, Keep: 1}, Evidence: e}, io.Discard, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	return &Gate{metrics: metrics.New(), overview: overview.New(), audit: log}
}

// report ends it, and reports its cost.
func (g *Gate) report(b *testing.B, before time.Duration) {
	if err := g.audit.Close(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64((used(b)-before).Nanoseconds())/float64(b.N), "cpu-ns/op")
	b.ReportMetric(float64(g.audit.Lost())/float64(b.N), "lost/op")
	runtime.GC()
}

// used returns the processor time of this process.
func used(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
