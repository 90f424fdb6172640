//go:build unix

package bench

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"testing"
	"time"

	"robotsgate/internal/gatetest"
)

// BenchmarkPace compares a gate with a pace, at an origin that has none, with one without.
func BenchmarkPace(b *testing.B) {
	compareGates(b, named{"without-pace", everything}, named{"with-pace", everything + "pace: {crawl_delay: obey, back_off: 10m}\n"})
}

// held is the number of requests that wait.
const held = 10_000

// BenchmarkHeld reports the memory that a request takes which waits for its turn, the processor time of
// a gate that holds them all, and what is left when their clients have disconnected. It needs 20,000 file
// descriptors in each process.
func BenchmarkHeld(b *testing.B) {
	o := newOrigins(b)
	for b.Loop() {
		config := fmt.Sprintf("pace: {min_delay: 1h, max_delay: 1h, max_wait: 100000h, max_queue: %d}\n", held)
		g := serving(b, exec.Command(os.Args[0], o.writeConfig(b, b.TempDir(), config)), "gate")
		keep(b, g, plain(http.StatusOK, same("http://127.0.0.2:"+o.few+"/1k")), 1)() // the request that the others wait for
		before, idle := g.memory(b), g.idles(b)
		conns := make([]net.Conn, held)
		for i := range conns {
			var err error
			if conns[i], err = net.Dial("tcp", g.addr); err != nil {
				b.Fatal(err)
			}
			if _, err := fmt.Fprintf(conns[i], "GET http://127.0.0.2:%s/1k HTTP/1.1\r\nHost: 127.0.0.2:%[1]s\r\nUser-Agent: %s\r\n\r\n", o.few, agent); err != nil {
				b.Fatal(err)
			}
		}
		g.waits(b, held)
		after := g.memory(b)
		busy := g.idles(b)
		left := time.Now()
		for _, conn := range conns {
			conn.Close()
		}
		g.waits(b, 0)
		took := time.Since(left)
		end := g.memory(b)
		b.ReportMetric(0, "ns/op")
		b.ReportMetric((after.resident-before.resident)/1024/held, "resident-KiB/request")
		b.ReportMetric((after.heap-before.heap)/1024/held, "heap-KiB/request")
		b.ReportMetric((after.stacks-before.stacks)/1024/held, "stacks-KiB/request")
		b.ReportMetric(busy, "cpu-percent")
		b.ReportMetric(idle, "cpu-percent-without")
		b.ReportMetric((end.resident-before.resident)/1024/held, "left-resident-KiB/request")
		b.ReportMetric((end.heap+end.stacks-before.heap-before.stacks)/1024/held, "left-heap-KiB/request")
		b.ReportMetric(took.Seconds()*1000, "leave-ms")
		g.stop()
	}
}

// idles returns the processor time in percent that a gate takes while nothing happens.
func (g *gate) idles(b *testing.B) float64 {
	b.Helper()
	time.Sleep(2 * time.Second) // real time: for what collections of garbage have left
	begun, err := g.spent()
	if err != nil {
		b.Fatal(err)
	}
	const long = 10
	time.Sleep(long * time.Second) // real time: the gate is another process
	over, err := g.spent()
	if err != nil {
		b.Fatal(err)
	}
	return (over.seconds - begun.seconds) / long * 100
}

// waits waits until n requests wait for their turn.
func (g *gate) waits(b *testing.B, n float64) {
	b.Helper()
	gatetest.Becomes(b, time.Minute, fmt.Sprintf("%v requests wait", n), func() bool { return g.metric(b, "robotsgate_pace_waiting") == n })
}
