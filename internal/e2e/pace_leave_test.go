//go:build unix

package e2e

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"robotsgate/internal/gatetest"
)

// TestLongPaceLeave: a client opens 10,000 requests, or as many as the descriptors allow, which all wait
// at one origin, and leaves. The queue is empty at once, and another client's request is the next.
func TestLongPaceLeave(t *testing.T) {
	gatetest.Long(t)
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		t.Fatal(err)
	}
	n := min(gatetest.Size(2000, 10_000), int(files.Cur/2)-200) // half of its descriptors are for the gate's clients
	origin := newTimedOrigin(t, "", 0)
	gate := gatetest.Serve(t, t.TempDir(), "listen: 127.0.0.1:0\ndata_dir: data\nadmin: {listen: 127.0.0.1:0}\negress: {allow_private: [127.0.0.0/8]}\n"+
		"limits: {max_connections: 20000}\npace: {min_delay: 5s, max_wait: 100000h, max_queue: 10000}\n")
	client, direct := gatetest.Client(t, gate.Proxy), gatetest.Client(t, "")
	gatetest.Request(t, client, http.MethodGet, origin.URL+"/first", http.StatusOK)
	conns := make([]net.Conn, n)
	for i := range conns {
		var err error
		if conns[i], err = net.Dial("tcp", strings.TrimPrefix(gate.Proxy, "http://")); err != nil {
			t.Fatal(err)
		}
		defer conns[i].Close()
		if _, err := fmt.Fprintf(conns[i], "GET %s/left HTTP/1.1\r\nHost: x\r\nUser-Agent: %d\r\n\r\n", origin.URL, i); err != nil {
			t.Fatal(err)
		}
	}
	waits := func(enough func(int) bool) {
		t.Helper()
		for begun := time.Now(); ; time.Sleep(20 * time.Millisecond) { // real time: the gate is another process
			var waiting int
			metrics, _ := gatetest.Request(t, direct, http.MethodGet, gate.Admin+"/metrics", http.StatusOK)
			_, line, _ := strings.Cut(metrics, "\nrobotsgate_pace_waiting ")
			if fmt.Sscan(line, &waiting); enough(waiting) {
				t.Logf("%d requests wait, after %v", waiting, time.Since(begun).Round(time.Millisecond))
				return
			}
			if time.Since(begun) > time.Minute {
				t.Fatalf("%d requests wait after a minute", waiting)
			}
		}
	}
	waits(func(waiting int) bool { return waiting >= n-20 }) // some have had their turn meanwhile
	for _, conn := range conns {
		conn.Close()
	}
	waits(func(waiting int) bool { return waiting == 0 })
	begun := time.Now()
	_, header := gatetest.Request(t, client, http.MethodGet, origin.URL+"/next", http.StatusOK)
	if took := time.Since(begun); took > 8*time.Second {
		t.Errorf("the next request had its turn after %v, %s", took, header.Get("Robots-Gate-Delay"))
	}
}
