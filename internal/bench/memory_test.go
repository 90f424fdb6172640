package bench

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// idle is how many connections are kept that nobody uses.
const idle = 2000

// BenchmarkIdle tells what an intercepted connection costs that has been used once and
// is kept: in all the gate's memory, and in what Go has of it in use.
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

// measureIdle reports the mean of a few gates: what is lost between objects depends on when
// collections happen to come.
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

// idleConns returns what all of them take in a gate of their own.
func idleConns(b *testing.B, o *origins, l *load) memory {
	g := serving(b, exec.Command(os.Args[0], o.writeConfig(b, b.TempDir(), "")), "gate")
	defer g.stop()
	defer keep(b, g, l, 100)() // those first things that every gate has
	before := g.memory(b)
	defer keep(b, g, l, idle)()
	after := g.memory(b)
	return memory{after.resident - before.resident, after.heap - before.heap, after.stacks - before.stacks}
}

// keep opens so many connections and sends a request over each.
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

// A memory is what a gate takes, in bytes, once garbage is collected.
type memory struct {
	resident float64 // of the process
	heap     float64 // in use, with what is lost between objects
	stacks   float64
}

// memory needs a gate that collects when it is told to. It lets it do so more than
// once: stacks shrink by half each time, as they do every two minutes in a gate at rest.
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
	return memory{g.resident(b), g.metric(b, "go_memstats_heap_inuse_bytes"), g.metric(b, "go_memstats_stack_inuse_bytes")}
}

func (g *gate) resident(b *testing.B) float64 {
	b.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", g.process.Pid))
	if err != nil {
		return g.metric(b, "process_resident_memory_bytes")
	}
	_, line, _ := strings.Cut(string(status), "VmRSS:")
	kb, err := strconv.ParseFloat(strings.Fields(line)[0], 64)
	if err != nil {
		b.Fatal(err)
	}
	return kb * 1024
}
