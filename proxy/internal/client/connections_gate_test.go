package client_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"robotsgate/proxy"
	"robotsgate/proxy/internal/proxytest"
)

// A connection counts until it closes, however it ends.
func TestPlacesAreFreed(t *testing.T) {
	t.Parallel() // it waits most of the time
	setup := func(o *proxy.Options) {
		o.Limits.HeaderTimeout = 300 * time.Millisecond
		o.Settings.Passthrough = func(host string) bool { return host == "loop.example.com" }
		done := o.Done
		o.Done = func(x *proxy.Record) {
			if strings.HasSuffix(x.URL, "/panic") {
				panic("of a test")
			}
			done(x)
		}
	}
	tests := []struct {
		name   string
		tunnel bool
		talk   func(t *testing.T, g *proxytest.Gate, conn net.Conn)
	}{
		{"it sends nothing", false, func(t *testing.T, _ *proxytest.Gate, conn net.Conn) { proxytest.WantClosed(t, conn) }},
		{"it begins a head", false, func(t *testing.T, _ *proxytest.Gate, conn net.Conn) {
			io.WriteString(conn, "GET http://example.com/ HTTP/1.1\r\nHo")
			io.Copy(io.Discard, conn)
		}},
		{"it begins a TLS handshake", false, func(t *testing.T, _ *proxytest.Gate, conn net.Conn) {
			conn.Write([]byte{0x16, 3, 1})
			io.Copy(io.Discard, conn)
		}},
		{"it speaks SOCKS", false, func(t *testing.T, _ *proxytest.Gate, conn net.Conn) {
			conn.Write([]byte{5, 1, 0})
			io.Copy(io.Discard, conn)
		}},
		{"it leaves", false, func(t *testing.T, g *proxytest.Gate, conn net.Conn) {
			io.WriteString(conn, "GET "+g.HTTP+"/ HTTP/1.1\r\nHost: x\r\n\r\n")
			if _, err := proxytest.ReadHead(conn); err != nil {
				t.Error(err)
			}
			conn.Close()
		}},
		{"its request panics", false, func(t *testing.T, g *proxytest.Gate, conn net.Conn) {
			io.WriteString(conn, "GET "+g.HTTP+"/panic HTTP/1.1\r\nHost: x\r\n\r\n")
			io.Copy(io.Discard, conn)
		}},
		{"its tunnel is silent", true, func(t *testing.T, g *proxytest.Gate, conn net.Conn) {
			openTunnel(t, conn, proxytest.Host(g.HTTPS))
			proxytest.WantClosed(t, conn)
		}},
		{"it leaves its tunnel", true, func(t *testing.T, g *proxytest.Gate, conn net.Conn) {
			openTunnel(t, conn, proxytest.Host(g.HTTPS))
			conn.Close()
		}},
		{"a request in its tunnel panics", true, func(t *testing.T, g *proxytest.Gate, conn net.Conn) {
			openTunnel(t, conn, proxytest.Host(g.HTTP))
			fmt.Fprintf(conn, "GET /panic HTTP/1.1\r\nHost: %s\r\n\r\n", proxytest.Host(g.HTTP))
			io.Copy(io.Discard, conn)
		}},
		{"it leaves a tunnel that is passed through", true, func(t *testing.T, g *proxytest.Gate, conn net.Conn) {
			openTunnel(t, conn, strings.Replace(proxytest.Host(g.HTTPS), "127.0.0.1", "loop.example.com", 1))
			conn.Close()
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := proxytest.Start(t, proxytest.Options{Proxy: setup})
			conn := g.Dial()
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(proxytest.Patience))
			proxytest.Eventually(t, "it is counted", func() bool { return g.Proxy.Connections().Open == 1 })
			test.talk(t, g, conn)
			proxytest.Eventually(t, "it is not counted any more", func() bool {
				c := g.Proxy.Connections()
				return c.Open == 0 && c.Tunnels == 0
			})
		})
	}
}

// openTunnel opens a tunnel.
func openTunnel(t *testing.T, conn net.Conn, target string) {
	t.Helper()
	fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: x\r\n\r\n", target)
	if resp, err := proxytest.ReadHead(conn); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(resp, err)
	}
}

// Open tunnels count as connections and as tunnels.
func TestTunnelsAreCounted(t *testing.T) {
	for _, passed := range []bool{false, true} {
		g := proxytest.Start(t, proxytest.Options{Proxy: func(o *proxy.Options) { o.Settings.Passthrough = func(string) bool { return passed } }})
		conn := g.Dial()
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(proxytest.Patience))
		openTunnel(t, conn, proxytest.Host(g.HTTPS))
		proxytest.Eventually(t, fmt.Sprintf("a tunnel is open, passed through: %v", passed), func() bool {
			c := g.Proxy.Connections()
			return c.Open == 1 && c.Tunnels == 1
		})
	}
}

// The times of a record are in the order of events, and 0 for events that did not happen.
func TestTimesOfRecord(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{})
	g.Get(g.HTTP + "/page")
	x := g.Next(t)
	if !(0 < x.Decided && x.Decided <= x.Sent && x.Sent <= x.Upstream && x.Upstream <= x.Answered && x.Answered <= x.Duration) {
		t.Errorf("allowed: decided %v, sent %v, upstream %v, answered %v, over %v", x.Decided, x.Sent, x.Upstream, x.Answered, x.Duration)
	}
	g.Get(g.HTTP + "/private/")
	if x := g.Next(t); x.Sent != 0 || x.Upstream != 0 || !(0 < x.Decided && x.Decided <= x.Answered) {
		t.Errorf("denied: decided %v, sent %v, upstream %v, answered %v", x.Decided, x.Sent, x.Upstream, x.Answered)
	}
}
