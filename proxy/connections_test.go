package proxy

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A connection counts until it closes, however it ends.
func TestPlacesAreFreed(t *testing.T) {
	setup := func(o *Options) {
		o.Limits.HeaderTimeout = 300 * time.Millisecond
		o.Settings.Passthrough = func(host string) bool { return host == "loop.example.com" }
		done := o.Done
		o.Done = func(x *Record) {
			if strings.HasSuffix(x.URL, "/panic") {
				panic("of a test")
			}
			done(x)
		}
	}
	tests := []struct {
		name   string
		tunnel bool
		talk   func(t *testing.T, w *world, conn net.Conn)
	}{
		{"it sends nothing", false, func(t *testing.T, _ *world, conn net.Conn) { wantClosed(t, conn) }},
		{"it begins a head", false, func(t *testing.T, _ *world, conn net.Conn) {
			io.WriteString(conn, "GET http://example.com/ HTTP/1.1\r\nHo")
			io.Copy(io.Discard, conn)
		}},
		{"it begins a TLS handshake", false, func(t *testing.T, _ *world, conn net.Conn) {
			conn.Write([]byte{0x16, 3, 1})
			io.Copy(io.Discard, conn)
		}},
		{"it speaks SOCKS", false, func(t *testing.T, _ *world, conn net.Conn) {
			conn.Write([]byte{5, 1, 0})
			io.Copy(io.Discard, conn)
		}},
		{"it leaves", false, func(t *testing.T, w *world, conn net.Conn) {
			io.WriteString(conn, "GET "+w.http+"/ HTTP/1.1\r\nHost: x\r\n\r\n")
			if _, err := readHead(conn); err != nil {
				t.Error(err)
			}
			conn.Close()
		}},
		{"its request panics", false, func(t *testing.T, w *world, conn net.Conn) {
			io.WriteString(conn, "GET "+w.http+"/panic HTTP/1.1\r\nHost: x\r\n\r\n")
			io.Copy(io.Discard, conn)
		}},
		{"its tunnel is silent", true, func(t *testing.T, w *world, conn net.Conn) {
			openTunnel(t, conn, host(w.https))
			wantClosed(t, conn)
		}},
		{"it leaves its tunnel", true, func(t *testing.T, w *world, conn net.Conn) {
			openTunnel(t, conn, host(w.https))
			conn.Close()
		}},
		{"a request in its tunnel panics", true, func(t *testing.T, w *world, conn net.Conn) {
			openTunnel(t, conn, host(w.http))
			fmt.Fprintf(conn, "GET /panic HTTP/1.1\r\nHost: %s\r\n\r\n", host(w.http))
			io.Copy(io.Discard, conn)
		}},
		{"it leaves a tunnel that is passed through", true, func(t *testing.T, w *world, conn net.Conn) {
			openTunnel(t, conn, strings.Replace(host(w.https), "127.0.0.1", "loop.example.com", 1))
			conn.Close()
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, options{gate: setup})
			conn := w.dial()
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(patience))
			eventually(t, "it is counted", func() bool { return w.gate.Connections().Open == 1 })
			test.talk(t, w, conn)
			eventually(t, "it is not counted any more", func() bool {
				c := w.gate.Connections()
				return c.Open == 0 && c.Tunnels == 0
			})
		})
	}
}

// openTunnel opens a tunnel.
func openTunnel(t *testing.T, conn net.Conn, target string) {
	t.Helper()
	fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: x\r\n\r\n", target)
	if resp, err := readHead(conn); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(resp, err)
	}
}

// Open tunnels count as connections and as tunnels.
func TestTunnelsAreCounted(t *testing.T) {
	for _, passed := range []bool{false, true} {
		w := newWorld(t, options{gate: func(o *Options) { o.Settings.Passthrough = func(string) bool { return passed } }})
		conn := w.dial()
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(patience))
		openTunnel(t, conn, host(w.https))
		eventually(t, fmt.Sprintf("a tunnel is open, passed through: %v", passed), func() bool {
			c := w.gate.Connections()
			return c.Open == 1 && c.Tunnels == 1
		})
	}
}

// The times of a record are in the order of events, and 0 for events that did not happen.
func TestTimesOfRecord(t *testing.T) {
	w := newWorld(t, options{})
	w.get(w.http + "/page")
	x := w.next(t)
	if !(0 < x.Decided && x.Decided <= x.Sent && x.Sent <= x.Upstream && x.Upstream <= x.Answered && x.Answered <= x.Duration) {
		t.Errorf("allowed: decided %v, sent %v, upstream %v, answered %v, over %v", x.Decided, x.Sent, x.Upstream, x.Answered, x.Duration)
	}
	w.get(w.http + "/private/")
	if x := w.next(t); x.Sent != 0 || x.Upstream != 0 || !(0 < x.Decided && x.Decided <= x.Answered) {
		t.Errorf("denied: decided %v, sent %v, upstream %v, answered %v", x.Decided, x.Sent, x.Upstream, x.Answered)
	}
}
