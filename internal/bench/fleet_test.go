//go:build unix

package bench

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"robotsgate/internal/gatetest"
)

// inFleet returns the configuration of a gate in a fleet with a store, and of others with the same result.
func inFleet(b *testing.B, redis *gatetest.RedisServer) string {
	key := filepath.Join(b.TempDir(), "fleet.key")
	if err := os.WriteFile(key, []byte(rand.Text()+rand.Text()), 0o600); err != nil {
		b.Fatal(err)
	}
	return everything + fmt.Sprintf("fleet: {address: %q, key_file: %q}\n", redis.Address(), key)
}

// BenchmarkFleet compares a gate in a fleet with one alone, at an origin that it knows. The ratio of a
// fleet of two gates to one gate is twice the ratio of the processor time for each request.
func BenchmarkFleet(b *testing.B) {
	config := inFleet(b, gatetest.Redis(b))
	b.Run("known", func(b *testing.B) {
		compareGates(b, named{"alone", everything}, named{"in-a-fleet", config})
	})
	b.Run("calls", func(b *testing.B) {
		o := newOrigins(b)
		g := serving(b, exec.Command(buildGate(b), "serve", "-c", o.writeConfig(b, b.TempDir(), config)), "")
		defer g.stop()
		waitUp(b, g, 1)
		known := plain(http.StatusOK, same("http://127.0.0.2:"+o.few+"/1k"))
		calls := func(run func()) float64 {
			before := g.metric(b, "robotsgate_fleet_calls_total")
			run()
			return g.metric(b, "robotsgate_fleet_calls_total") - before
		}
		if _, err := known.run(g.addr, aTurn); err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			idle := calls(func() { time.Sleep(20 * aTurn) }) // real time: the gate is another process
			var r result
			busy := calls(func() {
				var err error
				if r, err = known.run(g.addr, 20*aTurn); err != nil {
					b.Fatal(err)
				}
			})
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(idle/(20*aTurn).Seconds(), "calls/s-idle")
			b.ReportMetric(busy/(20*aTurn).Seconds(), "calls/s-busy")
			b.ReportMetric(max(0, busy-idle)/float64(r.requests), "calls/request")
		}
	})
}

// waitUp waits until the store of a gate can be used (1) or is away (0).
func waitUp(b *testing.B, g *gate, up float64) {
	gatetest.Becomes(b, 20*time.Second, "the gate has noticed the state of the store", func() bool { return g.metric(b, "robotsgate_fleet_up") == up })
}

// BenchmarkKnownByOthers reports how much longer a gate takes to refuse a request to an origin that another
// gate of the fleet knows than to one that it knows itself.
func BenchmarkKnownByOthers(b *testing.B) {
	const many = 3000
	o, program, config := newOrigins(b), buildGate(b), inFleet(b, gatetest.Redis(b))
	var both [2]*gate
	for i := range both {
		both[i] = serving(b, exec.Command(program, "serve", "-c", o.writeConfig(b, b.TempDir(), config)), "")
		defer both[i].stop()
		waitUp(b, both[i], 1)
	}
	refused := plain(http.StatusForbidden, o.each("/no/1k"))
	next := 0
	for b.Loop() {
		var asked [2]asker
		for i, g := range both {
			a, err := refused.open(g.addr, 0)
			if err != nil {
				b.Fatal(err)
			}
			defer a.close()
			asked[i] = a
		}
		timed(b, asked[0], next, many)
		time.Sleep(time.Second)                                                              // real time: until all is saved
		before, _ := readMetric(both[1].admin+"/metrics", "robotsgate_robots_fetches_total") // without fetches it is absent
		cold := timed(b, asked[1], next, many)
		after, _ := readMetric(both[1].admin+"/metrics", "robotsgate_robots_fetches_total")
		memory := timed(b, asked[1], next, many)
		next += many
		b.ReportMetric(0, "ns/op")
		reportAdded(b, cold, memory, "")
		b.ReportMetric(after-before, "fetches")
	}
}

// timed sends requests one after the other, and returns the sorted times.
func timed(b *testing.B, a asker, from, n int) []time.Duration {
	b.Helper()
	all := make([]time.Duration, n)
	for i := range all {
		begin := time.Now()
		if err := a.ask(from + i); err != nil {
			b.Fatal(err)
		}
		all[i] = time.Since(begin)
	}
	slices.Sort(all)
	return all
}

// reportAdded reports by how much times are longer than others. Both are sorted.
func reportAdded(b *testing.B, times, than []time.Duration, suffix string) {
	for name, part := range map[string]int{"p50": 50, "p99": 99} {
		t, u := times[len(times)*part/100], than[len(than)*part/100]
		b.ReportMetric(t.Seconds()*1e3, name+suffix+"-ms")
		b.ReportMetric((t-u).Seconds()*1e3, name+suffix+"-added-ms")
	}
}

// BenchmarkHungStore compares a gate whose store has hung with a gate that is in no fleet. Requests to both
// take turns.
func BenchmarkHungStore(b *testing.B) {
	const many = 5000
	o, program, redis := newOrigins(b), buildGate(b), gatetest.Redis(b)
	var both [2]*gate
	for i, config := range []string{everything, inFleet(b, redis)} {
		both[i] = serving(b, exec.Command(program, "serve", "-c", o.writeConfig(b, b.TempDir(), config)), "")
		defer both[i].stop()
	}
	waitUp(b, both[1], 1)
	known, cold := plain(http.StatusOK, same("http://127.0.0.2:"+o.few+"/1k")), plain(http.StatusForbidden, o.each("/no/1k"))
	inTurn := func(l *load, from, n int) (times [2][]time.Duration) {
		var asked [2]asker
		for i, g := range both {
			a, err := l.open(g.addr, 0)
			if err != nil {
				b.Fatal(err)
			}
			defer a.close()
			asked[i] = a
		}
		for n := range n {
			for i := range asked {
				times[(i+n)%2] = append(times[(i+n)%2], timed(b, asked[(i+n)%2], from+n, 1)...)
			}
		}
		slices.Sort(times[0])
		slices.Sort(times[1])
		return times
	}
	inTurn(known, 0, 100)
	next := 0
	for b.Loop() {
		redis.Stop()
		waitUp(b, both[1], 0)
		k, c := inTurn(known, 0, many), inTurn(cold, next, many/5)
		next += many / 5
		if up := both[1].metric(b, "robotsgate_fleet_up"); up != 0 {
			b.Errorf("the store is not away")
		}
		redis.Continue()
		waitUp(b, both[1], 1)
		b.ReportMetric(0, "ns/op")
		reportAdded(b, k[1], k[0], "")
		reportAdded(b, c[1], c[0], "-cold")
	}
}
