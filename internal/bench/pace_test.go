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
)

// BenchmarkPace compares a gate with a pace, at an origin that has none, with one without.
func BenchmarkPace(b *testing.B) {
	compareGates(b, named{"without-pace", everything}, named{"with-pace", everything + "pace: {crawl_delay: obey, back_off: 10m}\n"})
}

// held is the number of requests that wait: as many as the descriptors of most machines allow.
const held = 8000

// BenchmarkHeld reports the memory that a request takes which waits for its turn, and the processor
// time of a gate that holds them all.
func BenchmarkHeld(b *testing.B) {
	o := newOrigins(b)
	for b.Loop() {
		config := fmt.Sprintf("pace: {min_delay: 1h, max_delay: 1h, max_wait: 100000h, max_queue: %d}\n", held)
		g := serving(b, exec.Command(os.Args[0], o.writeConfig(b, b.TempDir(), config)), "gate")
		l := plain(http.StatusOK, same("http://127.0.0.2:"+o.few+"/1k"))
		closeAll := keep(b, g, l, 1) // the request that the others wait for
		before := g.memory(b)
		var conns []net.Conn
		for range held {
			conn, err := net.Dial("tcp", g.addr)
			if err != nil {
				b.Fatal(err)
			}
			conns = append(conns, conn)
			if _, err := fmt.Fprintf(conn, "GET http://127.0.0.2:%s/1k HTTP/1.1\r\nHost: 127.0.0.2:%[1]s\r\nUser-Agent: %s\r\n\r\n", o.few, agent); err != nil {
				b.Fatal(err)
			}
		}
		for g.metric(b, "robotsgate_pace_waiting") < held {
			time.Sleep(100 * time.Millisecond)
		}
		after := g.memory(b)
		begun, err := g.spent()
		if err != nil {
			b.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		over, err := g.spent()
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(0, "ns/op")
		b.ReportMetric((after.resident-before.resident)/1024/held, "resident-KiB/request")
		b.ReportMetric((after.heap-before.heap)/1024/held, "heap-KiB/request")
		b.ReportMetric((after.stacks-before.stacks)/1024/held, "stacks-KiB/request")
		b.ReportMetric((over.seconds-begun.seconds)/5*100, "cpu-percent")
		for _, conn := range conns {
			conn.Close()
		}
		closeAll()
		g.stop()
	}
}
