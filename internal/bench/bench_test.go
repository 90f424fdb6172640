//go:build unix

package bench

import (
	"net/http"
	"slices"
	"testing"
	"time"
)

const (
	rounds = 21                     // after one for each gate to warm up, which does not count
	aTurn  = 250 * time.Millisecond // of each proxy; the load of the machine changes slower
)

// everything is the configuration of a gate with all features on, and an audit log.
const everything = "log: {audit: audit.jsonl}\nrobots: {cache_bytes: 512MiB}\n"

// BenchmarkGate compares the gate with the bare forwarder, and with goproxy where that
// can do the same. It reports the requests per second of each, and the ratio of the gate
// to the bare forwarder. Each figure is the median of the rounds.
func BenchmarkGate(b *testing.B) {
	a := newArena(b, everything)
	few, secure := "127.0.0.2:"+a.few, "127.0.0.2:"+a.secure
	refused := plain(http.StatusForbidden, same("http://"+few+"/no/1k"))
	get := func(host, path string) *load { return plain(http.StatusOK, same("http://"+host+path)) }
	for _, c := range []struct {
		name  string
		load  *load
		limit *load  // load of the bare forwarder, if it is another
		not   string // a proxy that is left out
	}{
		{name: "1KiB", load: get(few, "/1k")},
		{name: "page", load: get(few, "/html")},
		{name: "page-gzip", load: get(few, "/html.gz")},
		{name: "1MiB", load: get(few, "/1m")},
		{name: "refused", load: refused, limit: get(few, "/1k"), not: "goproxy"},
		{name: "tls-http1", load: intercepted(secure, "/1k")},
		{name: "tls-http2", load: interceptedHTTP2(secure, "/1k"), not: "goproxy"},
		{name: "tls-new-tunnels", load: tunnelEach(secure, "/1k")},
	} {
		b.Run(c.name, func(b *testing.B) {
			contenders := []contender{{a.forwarder, c.load}, {a.goproxy, c.load}, {&a.gate.proxy, c.load}}
			if c.limit != nil {
				contenders[0].load = c.limit
			}
			if c.not != "" {
				contenders = slices.Delete(contenders, 1, 2)
			}
			for b.Loop() {
				measure(b, contenders)
			}
		})
	}
}

// A contender is a proxy under a load.
type contender struct {
	*proxy
	load *load
}

// measure lets the contenders take turns, and reports the ratio of the last to the first.
func measure(b *testing.B, contenders []contender) {
	results := make([][]result, len(contenders))
	for round := -1; round < rounds; round++ {
		for k := range contenders {
			i := (k + round + 1) % len(contenders) // each is the first once in a while
			c := contenders[i]
			r, err := c.take(aTurn)
			if err != nil {
				b.Fatalf("%s: %v", c.name, err)
			}
			if round >= 0 {
				results[i] = append(results[i], r)
			}
		}
	}
	first, last := results[0], results[len(results)-1]
	// report reports the median of a figure of each round.
	report := func(of func(round int) float64, unit string) {
		all := make([]float64, rounds)
		for i := range all {
			all[i] = of(i)
		}
		b.ReportMetric(median(all), unit)
	}
	b.ReportMetric(0, "ns/op") // has no meaning here
	report(func(i int) float64 { return last[i].perSecond / first[i].perSecond }, "ratio")
	report(func(i int) float64 { return float64(last[i].p99) / float64(first[i].p99) }, "p99-ratio")
	for i, c := range contenders {
		report(func(r int) float64 { return results[i][r].perSecond }, c.name+"/s")
		report(func(r int) float64 { return results[i][r].cost.seconds * 1e6 }, c.name+"-cpu-µs")
	}
	report(func(i int) float64 { return last[i].p50.Seconds() * 1e3 }, "p50-ms")
	report(func(i int) float64 { return last[i].p99.Seconds() * 1e3 }, "p99-ms")
	report(func(i int) float64 { return last[i].cost.allocs }, "allocs/req")
	report(func(i int) float64 { return last[i].cost.bytes }, "B/req")
}

// take measures one turn of a contender.
func (c contender) take(turn time.Duration) (result, error) {
	return c.cost(func() (result, error) { return c.load.run(c.addr, turn) })
}

// cost adds to the result of a load what the proxy has spent for each request.
func (p *proxy) cost(run func() (result, error)) (result, error) {
	before, err := p.spent()
	if err != nil {
		return result{}, err
	}
	r, err := run()
	if err != nil {
		return result{}, err
	}
	after, err := p.spent()
	r.cost = after.each(before, r.requests)
	return r, err
}

// median sorts the values.
func median(all []float64) float64 {
	slices.Sort(all)
	return all[len(all)/2]
}
