//go:build unix

package origin_test

import (
	"bufio"
	"fmt"
	"net/http"
	"testing"

	"robotsgate/internal/gatetest"
	"robotsgate/proxy/internal/proxytest"
)

// TestUpstreamCloses: Close closes the connections to origins.
func TestUpstreamCloses(t *testing.T) {
	o := gatetest.StartAnswering(t)
	g := proxytest.Start(t, proxytest.Options{})
	resp, body := g.Get("http://" + o.Host + "/")
	proxytest.WantStatus(t, resp, http.StatusOK)
	if body != "1.2" { // after robots.txt
		t.Errorf("got %q", body)
	}
	g.Transport.Close()
	proxytest.Receive(t, o.Ended, "the connection's end")
}

// TestNoStatusIsBadGateway: for an invalid status of the origin the client gets 502.
func TestNoStatusIsBadGateway(t *testing.T) {
	for _, status := range []string{"000", "007", "099", "+99", "101"} {
		t.Run(status, func(t *testing.T) {
			o := gatetest.StartLineOrigin(t, gatetest.Answering(func(n, i int, r *http.Request) string {
				if r.URL.Path == "/robots.txt" {
					return gatetest.NotFound
				}
				return "HTTP/1.1 " + status + " X\r\nContent-Length: 0\r\n\r\n" + gatetest.Numbered(n, i)
			}))
			g := proxytest.Start(t, proxytest.Options{})
			resp, _ := g.Get("http://" + o.Host + "/")
			proxytest.WantStatus(t, resp, http.StatusBadGateway)
			if x := g.Next(t); x.Error != "the origin's answer has a status or a field that it must not have" {
				t.Errorf("the record says %q", x.Error)
			}
		})
	}
}

// TestClientLeavesTheGate: when a client disconnects, the connection to the origin is closed.
func TestClientLeavesTheGate(t *testing.T) {
	t.Parallel() // it waits most of the time
	for name, before := range map[string]string{
		"before the head": "",
		"within the body": "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nbody",
	} {
		t.Run(name, func(t *testing.T) {
			o, arrived, closed := proxytest.StartUnanswered(t, before)
			g := proxytest.Start(t, proxytest.Options{})
			conn := g.Dial()
			defer conn.Close()
			fmt.Fprintf(conn, "GET http://%s/ HTTP/1.1\r\nHost: %s\r\n\r\n", o.Host, o.Host)
			proxytest.Receive(t, arrived, "the request")
			if before != "" {
				if _, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil {
					t.Fatal(err)
				}
			}
			conn.Close()
			proxytest.Receive(t, closed, "the end of the connection to the origin")
		})
	}
}
