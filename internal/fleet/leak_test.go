package fleet

import (
	"context"
	"net"
	"os"
	"runtime"
	"runtime/pprof"
	"testing"
	"time"

	"robotsgate/internal/gatetest"
)

// TestNoGoroutinesLeft dials servers of all kinds again and again, as a link does while its server is
// away: each connection must end with all that belongs to it.
func TestNoGoroutinesLeft(t *testing.T) {
	process := gatetest.Redis(t)
	hung, err := net.Listen("tcp", "127.0.0.1:0") // which accepts no connection
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { hung.Close() })
	locked := gatetest.Redis(t, "--requirepass", "secret")
	times := gatetest.Size(5, 30)
	for name, c := range map[string]struct {
		address string
		timeout time.Duration
	}{
		"used and closed":           {"redis://" + process.HostPort(), time.Second},
		"two hosts, no Cluster":     {"redis://" + process.HostPort() + "," + locked.HostPort(), time.Second},
		"no server":                 {"redis://127.0.0.1:1", time.Second},
		"no Sentinel":               {"redis://127.0.0.1:1?sentinel=main", time.Second},
		"no such Sentinel":          {"redis://" + process.HostPort() + "?sentinel=main", time.Second},
		"no password":               {locked.Address(), time.Second},
		"hung":                      {"redis://" + hung.Addr().String(), 20 * time.Millisecond},
		"no slots":                  {"redis://" + answering(t, []string{helloAnswer, "*0\r\n"}), time.Second},
		"a Cluster that moves away": {"redis://" + answering(t, []string{helloAnswer, "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$0\r\n\r\n:%d\r\n", "-MOVED 1 127.0.0.1:1\r\n"}), time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			before := runtime.NumGoroutine()
			for range times {
				ctx, cancel := context.WithTimeout(t.Context(), c.timeout)
				if s, err := dial(ctx, c.address, nil, "robotsgate", c.timeout); err == nil {
					_ = s.notify(ctx, nil)
					s.close()
				}
				cancel()
			}
			for end := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before+2; <-time.After(10 * time.Millisecond) {
				if time.Now().After(end) {
					pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
					t.Fatalf("%d goroutines, %d before %d connections", runtime.NumGoroutine(), before, times)
				}
			}
		})
	}
}
