//go:build unix

package bench

import (
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"
)

const (
	// millionKey is the variable that adds the crawl of a million origins, which takes about half an hour.
	millionKey = "ROBOTSGATE_BENCH_MILLION"
	// otherKey is the variable with another program of the gate, which takes turns with this one.
	otherKey = "ROBOTSGATE_BENCH_OTHER"

	crawlers = 128    // connections
	aPart    = 2_500  // origins that each contender visits in its turn
	visited  = 20_000 // origins that are visited again, at most

	maxResident = 832 // MiB
)

// broadly is the configuration of a broad crawl: the default one with an audit log.
const broadly = "log: {audit: audit.jsonl}\n"

// BenchmarkBroad is a crawl of one page from each of many origins, and a second visit to some of them. At the first
// visit the bare forwarder's client fetches each robots.txt itself, as a polite crawler does, and its time for an
// origin is that of both.
func BenchmarkBroad(b *testing.B) {
	o, program := newOrigins(b), buildGate(b)
	forwarder := startForwarder(b, "forwarder", o.certificate)
	sizes := []int{10_000, 100_000}
	if os.Getenv(millionKey) != "" {
		sizes = append(sizes, 1_000_000)
	}
	for _, n := range sizes {
		b.Run(fmt.Sprintf("%d-origins", n), func(b *testing.B) {
			for b.Loop() {
				crawlBroadly(b, o, forwarder, program, n)
			}
		})
	}
}

// originAt returns the n-th origin with a port: each has an address of loopback.
func originAt(n int, port string) string {
	return fmt.Sprintf("http://127.%d.%d.%d:%s", 1+n>>16, n>>8&0xff, n&0xff, port)
}

func crawlBroadly(b *testing.B, o *origins, forwarder *proxy, program string, n int) {
	b.ReportMetric(0, "ns/op")
	dir := b.TempDir()
	config := o.writeConfig(b, dir, broadly)
	cmd, role := exec.Command(program, "serve", "-c", config), ""
	if os.Getenv(profileKey) != "" {
		cmd, role = exec.Command(os.Args[0], config), "gate"
	}
	g := serving(b, cmd, role)
	defer g.stop()
	all := []*proxy{forwarder, &g.proxy}
	if other := os.Getenv(otherKey); other != "" {
		before := serving(b, exec.Command(other, "serve", "-c", o.writeConfig(b, b.TempDir(), broadly)), "")
		defer before.stop()
		before.name = "other"
		all = []*proxy{forwarder, &before.proxy, &g.proxy}
	}

	first := newVisits(all)
	first.visit(b, o, n, 1, forwarder)
	first.report(b, "")
	b.ReportMetric(g.status(b, "VmRSS")/(1<<20), "resident-MiB")
	most := g.status(b, "VmHWM") / (1 << 20)
	b.ReportMetric(most, "most-resident-MiB")
	if most > maxResident {
		b.Errorf("the gate has taken %.0f MiB, more than %d", most, maxResident)
	}

	again := newVisits(all)
	again.visit(b, o, min(n, visited), n/min(n, visited), nil)
	again.report(b, "again-")
	if fetches := g.metric(b, "robotsgate_robots_fetches_total"); fetches != float64(n) {
		b.Errorf("%v robots.txt files were fetched of %d origins", fetches, n)
	}

	g.stop() // which writes what waits for the disk
	b.ReportMetric(allocated(b, filepath.Join(dir, "data"))/float64(n)-float64(len(robotsTxt(broadRules))), "disk-beside-text-B/origin")
	b.ReportMetric(firstDecision(b, exec.Command(program, "serve", "-c", config), originAt(n/2, o.broad)).Seconds()*1e3, "restart-ms")
}

// visits are the results of the contenders, one for each part of the origins.
type visits struct {
	all   []*proxy // the bare forwarder first, the gate last
	parts [][]result
}

func newVisits(all []*proxy) *visits { return &visits{all, make([][]result, len(all))} }

// visit lets the contenders take turns to visit n origins, each this number after the one before. The clients of
// polite fetch the robots.txt of each origin first.
func (v *visits) visit(b *testing.B, o *origins, n, step int, polite *proxy) {
	for from := 0; from < n; from += aPart {
		// The requests are made beforehand, so that clients do little work beside the proxies.
		var robots, pages [][]byte
		for i := from; i < min(from+aPart, n); i++ {
			origin := originAt(i*step, o.broad)
			robots = append(robots, same(origin+"/robots.txt")(0))
			pages = append(pages, same(origin+"/1k")(0))
		}
		for k := range v.all {
			i := (k + from/aPart) % len(v.all) // each is the first once in a while
			p := v.all[i]
			l := plain(http.StatusOK, func(n int) []byte { return pages[n] })
			if p == polite {
				l = politely(l, func(n int) []byte { return robots[n] })
			}
			r, err := p.cost(func() (result, error) {
				return l.measure(p.addr, crawlers, func(n int, _ time.Duration) bool { return n < len(pages) })
			})
			if err != nil {
				b.Fatalf("%s: %v", p.name, err)
			}
			v.parts[i] = append(v.parts[i], r)
		}
	}
}

// politely sends another request before each request of a load.
func politely(l *load, robots func(n int) []byte) *load {
	return &load{status: l.status, open: func(proxy string, client int) (asker, error) {
		a, err := l.open(proxy, client)
		if err != nil {
			return nil, err
		}
		return &polite{a.(*kept), robots}, nil
	}}
}

type polite struct {
	*kept
	robots func(n int) []byte
}

func (p *polite) ask(n int) error {
	if err := p.send(p.robots(n)); err != nil {
		return err
	}
	return p.kept.ask(n)
}

// report reports medians of all parts, and of the last fifth of them.
func (v *visits) report(b *testing.B, visit string) {
	last := len(v.all) - 1
	of := func(contender, part int, figure func(result) float64) float64 {
		return figure(v.parts[contender][part])
	}
	report := func(value func(part int) float64, unit string) {
		var all []float64
		for part := range v.parts[last] {
			all = append(all, value(part))
		}
		b.ReportMetric(median(slices.Clone(all)), visit+unit)
		if atEnd := all[len(all)-(len(all)+4)/5:]; unit == "ratio" {
			b.ReportMetric(median(atEnd), visit+"ratio-at-end")
		}
	}
	perSecond := func(r result) float64 { return r.perSecond }
	p99 := func(r result) float64 { return r.p99.Seconds() * 1e3 }
	for i, p := range v.all {
		report(func(part int) float64 { return of(i, part, perSecond) }, p.name+"/s")
		report(func(part int) float64 { return of(i, part, func(r result) float64 { return r.cost.seconds * 1e6 }) }, p.name+"-cpu-µs")
		to := ""
		switch i {
		case last:
			continue
		case 0:
		default:
			to = "-to-" + p.name
		}
		report(func(part int) float64 { return of(last, part, perSecond) / of(i, part, perSecond) }, "ratio"+to)
		report(func(part int) float64 { return of(last, part, p99) / of(i, part, p99) }, "p99-ratio"+to)
	}
	report(func(part int) float64 { return of(last, part, func(r result) float64 { return r.p50.Seconds() * 1e3 }) }, "p50-ms")
	report(func(part int) float64 { return of(last, part, p99) }, "p99-ms")
	report(func(part int) float64 { return of(last, part, func(r result) float64 { return r.cost.allocs }) }, "allocs/origin")
	report(func(part int) float64 { return of(last, part, func(r result) float64 { return r.cost.bytes }) }, "B/origin")
}

// allocated returns how many bytes of the disk the files of a directory take.
func allocated(b *testing.B, dir string) (bytes float64) {
	b.Helper()
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil {
			bytes += float64(info.Sys().(*syscall.Stat_t).Blocks * 512)
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return bytes
}

// firstDecision starts a gate and returns the time until it has refused a request to an origin.
func firstDecision(b *testing.B, cmd *exec.Cmd, origin string) time.Duration {
	b.Helper()
	begun := time.Now()
	g := serving(b, cmd, "")
	defer g.stop()
	a, err := plain(http.StatusForbidden, same(origin+"/no/1k")).open(g.addr, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer a.close()
	if err := a.ask(0); err != nil {
		b.Fatal(err)
	}
	took := time.Since(begun)
	if fetches := g.metric(b, "robotsgate_robots_fetches_total"); fetches != 0 {
		b.Errorf("the origin's robots.txt was fetched again")
	}
	return took
}
