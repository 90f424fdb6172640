package client_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"robotsgate/internal/record"
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
		o.Done = func(x *record.Record) {
			if strings.HasSuffix(x.Path, "/panic") {
				panic("of a test")
			}
			done(x)
		}
	}
	tests := []struct {
		name   string
		tunnel bool // conn is a tunnel, to the origin in clear
		unseen bool // or one to the origin in TLS that is passed through
		talk   func(t *testing.T, g *proxytest.Gate, conn net.Conn)
	}{
		{"it sends nothing", false, false, func(t *testing.T, _ *proxytest.Gate, conn net.Conn) { proxytest.WantClosed(t, conn) }},
		{"it begins a head", false, false, func(t *testing.T, _ *proxytest.Gate, conn net.Conn) {
			io.WriteString(conn, "GET http://example.com/ HTTP/1.1\r\nHo")
			io.Copy(io.Discard, conn)
		}},
		{"it begins a TLS handshake", false, false, func(t *testing.T, _ *proxytest.Gate, conn net.Conn) {
			conn.Write([]byte{0x16, 3, 1})
			io.Copy(io.Discard, conn)
		}},
		{"it speaks SOCKS", false, false, func(t *testing.T, _ *proxytest.Gate, conn net.Conn) {
			conn.Write([]byte{5, 1, 0})
			io.Copy(io.Discard, conn)
		}},
		{"it leaves", false, false, func(t *testing.T, g *proxytest.Gate, conn net.Conn) {
			io.WriteString(conn, "GET "+g.HTTP+"/ HTTP/1.1\r\nHost: x\r\n\r\n")
			if _, err := proxytest.ReadHead(conn); err != nil {
				t.Error(err)
			}
			conn.Close()
		}},
		{"its request panics", false, false, func(t *testing.T, g *proxytest.Gate, conn net.Conn) {
			io.WriteString(conn, "GET "+g.HTTP+"/panic HTTP/1.1\r\nHost: x\r\n\r\n")
			io.Copy(io.Discard, conn)
		}},
		{"its tunnel is silent", true, false, func(t *testing.T, _ *proxytest.Gate, conn net.Conn) { proxytest.WantClosed(t, conn) }},
		{"it leaves its tunnel", true, false, func(_ *testing.T, _ *proxytest.Gate, conn net.Conn) { conn.Close() }},
		{"a request in its tunnel panics", true, false, func(_ *testing.T, g *proxytest.Gate, conn net.Conn) {
			fmt.Fprintf(conn, "GET /panic HTTP/1.1\r\nHost: %s\r\n\r\n", proxytest.Host(g.HTTP))
			io.Copy(io.Discard, conn)
		}},
		{"it leaves a tunnel that is passed through", true, true, func(_ *testing.T, _ *proxytest.Gate, conn net.Conn) { conn.Close() }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			g := proxytest.Start(t, proxytest.Options{Proxy: setup})
			target, tunnels := proxytest.Host(g.HTTP), 0
			if test.unseen {
				target = strings.Replace(proxytest.Host(g.HTTPS), "127.0.0.1", "loop.example.com", 1)
			}
			conn := g.Dial()
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(proxytest.Patience))
			if test.tunnel {
				tunnels = 1
				fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: x\r\n\r\n", target)
				if resp, err := proxytest.ReadHead(conn); err != nil || resp.StatusCode != http.StatusOK {
					t.Fatal(resp, err)
				}
			}
			proxytest.Eventually(t, "it is counted", func() bool {
				c := g.Proxy.Connections()
				return c.Open == 1 && c.Tunnels == tunnels
			})
			test.talk(t, g, conn)
			proxytest.Eventually(t, "it is not counted any more", func() bool {
				c := g.Proxy.Connections()
				return c.Open == 0 && c.Tunnels == 0
			})
		})
	}
}

// The times of a record are in the order of events, and 0 for events that did not happen.
func TestTimesOfRecord(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{})
	g.Get(g.HTTP + "/page")
	x := g.Next(t)
	if s := x.Stages; !(0 < s.Decided && s.Decided <= s.Sent && s.Sent <= s.Upstream && s.Upstream <= s.Answered && s.Answered.Seconds() <= x.Duration) {
		t.Errorf("allowed: %+v, over after %v s", s, x.Duration)
	}
	g.Get(g.HTTP + "/private/")
	if s := g.Next(t).Stages; s.Sent != 0 || s.Upstream != 0 || !(0 < s.Decided && s.Decided <= s.Answered) {
		t.Errorf("denied: %+v", s)
	}
}
