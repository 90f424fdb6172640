//go:build unix

package bench

import (
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	burst = 10_000 // origins
	pace  = 5 * time.Millisecond
)

// BenchmarkBurst reports the duration of requests to a known origin, sent at a steady
// rate, while clients request many origins that the gate has not fetched before; and,
// to compare, while as many clients send requests to one known origin.
func BenchmarkBurst(b *testing.B) {
	a := newArena(b, everything)
	known := plain(http.StatusOK, same("http://127.0.0.2:"+a.few+"/1k"))
	busy := plain(http.StatusForbidden, same("http://127.0.0.2:"+a.few+"/no/1k"))
	met := 0
	for b.Loop() {
		begun := time.Now()
		beside := steady(b, a.gate, known, func() {
			meet(b, a.gate, a.each("/no/1k"), met, burst)
			b.ReportMetric(burst/time.Since(begun).Seconds(), "origins/s")
		})
		met += burst
		tick := time.NewTicker(pace) // polling without a pause would slow the gate down
		for a.gate.metric(b, "robotsgate_snapshot_origins") < float64(met) {
			if <-tick.C; time.Since(begun) > time.Minute {
				b.Fatal("not all snapshots have been stored within a minute")
			}
		}
		tick.Stop()
		b.ReportMetric(time.Since(begun).Seconds(), "s-until-written")
		among := steady(b, a.gate, known, func() {
			if _, err := busy.run(a.gate.addr, 2*time.Second); err != nil {
				b.Fatal(err)
			}
		})
		b.ReportMetric(0, "ns/op")
		for name, times := range map[string][]time.Duration{"known": among, "first-seen": beside} {
			slices.Sort(times)
			b.ReportMetric(times[len(times)/2].Seconds()*1e3, name+"-p50-ms")
			b.ReportMetric(times[len(times)*99/100].Seconds()*1e3, name+"-p99-ms")
			b.ReportMetric(times[len(times)-1].Seconds()*1e3, name+"-max-ms")
		}
	}
}

// steady sends requests at a steady rate until what returns.
func steady(b *testing.B, g *gate, l *load, what func()) []time.Duration {
	b.Helper()
	const connections = 8
	var done atomic.Bool
	times, errs := make([][]time.Duration, connections), make([]error, connections)
	var all sync.WaitGroup
	for i := range connections {
		all.Go(func() {
			a, err := l.open(g.addr, i)
			if errs[i] = err; err != nil {
				return
			}
			defer a.close()
			tick := time.NewTicker(pace)
			defer tick.Stop()
			for n := 0; !done.Load() && errs[i] == nil; n++ {
				due := <-tick.C
				errs[i] = a.ask(n)
				times[i] = append(times[i], time.Since(due)) // from the time at which it was due
			}
		})
	}
	what()
	done.Store(true)
	all.Wait()
	for _, err := range errs {
		if err != nil {
			b.Fatal(err)
		}
	}
	return slices.Concat(times...)
}

// meet sends one request to each of n origins.
func meet(b *testing.B, g *gate, head func(n int) []byte, from, n int) {
	b.Helper()
	l := plain(http.StatusForbidden, head)
	errs := make([]error, clients)
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			a, err := l.open(g.addr, i)
			if errs[i] = err; err != nil {
				return
			}
			defer a.close()
			for j := from + i; j < from+n && errs[i] == nil; j += clients {
				errs[i] = a.ask(j)
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			b.Fatal(err)
		}
	}
}
