package proxy_test

import (
	"net/http"
	"testing"

	"robotsgate/internal/record"
	"robotsgate/proxy"
	"robotsgate/proxy/internal/proxytest"
)

// TestMaxRequests: a request beyond limits.max_requests, of which one waits for its turn, gets a 503 and leaves a
// record; when the first has ended, it is served.
func TestMaxRequests(t *testing.T) {
	pacer := newTestPacer()
	g := proxytest.Start(t, proxytest.Options{Proxy: func(o *proxy.Options) {
		o.Settings.Pacer, o.Settings.MaxRequests = pacer, 1
	}})
	g.Ways(t, func(t *testing.T, v proxytest.Way) {
		status := make(chan int, 1)
		ask := func() {
			go func() {
				resp, _ := v.Get(t, "/page")
				status <- resp.StatusCode
			}()
			proxytest.Receive(t, pacer.waiting, "the request's wait")
		}
		served := func() {
			pacer.turn <- nil
			if got := proxytest.Receive(t, status, "the response"); got != http.StatusOK {
				t.Errorf("got %d, want 200", got)
			}
			g.Next(t)
		}
		ask()
		resp, _ := v.Get(t, "/page")
		proxytest.WantStatus(t, resp, http.StatusServiceUnavailable)
		proxytest.WantHeader(t, resp, "Retry-After", "1")
		proxytest.WantHeader(t, resp, "Robots-Gate-Decision", "")
		if x := g.Next(t); x.Refused != record.ByLimit || x.Status != http.StatusServiceUnavailable {
			t.Errorf("the record of the second: %q, %d", x.Refused, x.Status)
		}
		served()
		ask()
		served()
	})
}
