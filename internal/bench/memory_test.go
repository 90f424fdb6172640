//go:build unix

package bench

import (
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
)

// idle is the number of idle connections.
const idle = 2000

// BenchmarkIdle reports the memory of an intercepted connection that is idle after one
// request: of the whole process, and in use by Go.
func BenchmarkIdle(b *testing.B) {
	o := newOrigins(b)
	for name, l := range map[string]*load{
		"tls-http1": intercepted("127.0.0.2:"+o.secure, "/1k"), "tls-http2": interceptedHTTP2("127.0.0.2:"+o.secure, "/1k"),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				measureIdle(b, o, l)
			}
		})
	}
}

// measureIdle reports the mean of a few gates, since fragmentation depends on when
// garbage is collected.
func measureIdle(b *testing.B, o *origins, l *load) {
	var all memory
	for range gates {
		one := idleConns(b, o, l)
		all.resident += one.resident
		all.heap += one.heap
		all.stacks += one.stacks
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(all.resident/1024/idle/gates, "resident-KiB/conn")
	b.ReportMetric(all.heap/1024/idle/gates, "heap-KiB/conn")
	b.ReportMetric(all.stacks/1024/idle/gates, "stacks-KiB/conn")
}

// idleConns returns the memory of all idle connections to a new gate.
func idleConns(b *testing.B, o *origins, l *load) memory {
	g := serving(b, exec.Command(os.Args[0], o.writeConfig(b, b.TempDir(), "")), "gate")
	defer g.stop()
	defer keep(b, g, l, 100)() // so that memory needed only once does not count
	before := g.memory(b)
	defer keep(b, g, l, idle)()
	after := g.memory(b)
	return memory{after.resident - before.resident, after.heap - before.heap, after.stacks - before.stacks}
}

// keep opens n connections and sends a request over each.
func keep(b *testing.B, g *gate, l *load, n int) (closeAll func()) {
	b.Helper()
	askers, errs := make([]asker, n), make([]error, n)
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			for j := i; j < n; j += clients {
				if askers[j], errs[j] = l.open(g.addr, j); errs[j] == nil {
					errs[j] = askers[j].ask(j)
				}
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			b.Fatal(err)
		}
	}
	return func() {
		for _, a := range askers {
			a.close()
		}
	}
}

// A memory is the memory of a gate in bytes, after garbage collection.
type memory struct {
	resident float64 // of the process
	heap     float64 // in use, with fragmentation
	stacks   float64
}

// memory needs a gate that collects garbage on SIGUSR1, as serveGate does. It sends
// several signals: each collection halves stacks, as it does every two minutes in an
// idle gate.
func (g *gate) memory(b *testing.B) memory {
	b.Helper()
	for range 3 {
		const collections = "go_gc_duration_seconds_count"
		for before := g.metric(b, collections); g.metric(b, collections) == before; {
			if err := g.process.Signal(syscall.SIGUSR1); err != nil {
				b.Fatal(err)
			}
		}
	}
	return memory{g.status(b, "VmRSS"), g.metric(b, "go_memstats_heap_inuse_bytes"), g.metric(b, "go_memstats_stack_inuse_bytes")}
}
