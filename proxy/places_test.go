package proxy

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A place that a connection takes is free again however the connection ends.
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
			conn.Write([]byte{recordTypeHandshake, 3, 1})
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
			dig(t, conn, host(w.https))
			wantClosed(t, conn)
		}},
		{"it leaves its tunnel", true, func(t *testing.T, w *world, conn net.Conn) {
			dig(t, conn, host(w.https))
			conn.Close()
		}},
		{"a request in its tunnel panics", true, func(t *testing.T, w *world, conn net.Conn) {
			dig(t, conn, host(w.http))
			fmt.Fprintf(conn, "GET /panic HTTP/1.1\r\nHost: %s\r\n\r\n", host(w.http))
			io.Copy(io.Discard, conn)
		}},
		{"it leaves a tunnel that is passed through", true, func(t *testing.T, w *world, conn net.Conn) {
			dig(t, conn, strings.Replace(host(w.https), "127.0.0.1", "loop.example.com", 1))
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
			eventually(t, "its place is free", func() bool {
				c := w.gate.Connections()
				return c.Open == 0 && c.Tunnels == 0
			})
			w.gate.crowd.mu.Lock()
			defer w.gate.crowd.mu.Unlock()
			if n := len(w.gate.crowd.clients); n != 0 {
				t.Errorf("%d clients are still counted", n)
			}
		})
	}
}

// dig opens a tunnel, which counts as one.
func dig(t *testing.T, conn net.Conn, target string) {
	t.Helper()
	fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: x\r\n\r\n", target)
	if resp, err := readHead(conn); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(resp, err)
	}
}

// While they last, tunnels count as connections and as tunnels.
func TestTunnelsAreCounted(t *testing.T) {
	for _, passed := range []bool{false, true} {
		w := newWorld(t, options{gate: func(o *Options) { o.Settings.Passthrough = func(string) bool { return passed } }})
		conn := w.dial()
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(patience))
		dig(t, conn, host(w.https))
		eventually(t, fmt.Sprintf("a tunnel is open, passed through: %v", passed), func() bool {
			c := w.gate.Connections()
			return c.Open == 1 && c.Tunnels == 1
		})
	}
}

// One client has a whole /64 of the internet's IPv6 addresses.
func TestHousehold(t *testing.T) {
	for _, test := range []struct{ address, want string }{
		{"192.0.2.7", "192.0.2.7"},
		{"10.0.0.7", "10.0.0.7"},
		{"2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"},
		{"2001:db8:1:2:ffff::1", "2001:db8:1:2::"},
		{"2001:db8:1:3::1", "2001:db8:1:3::"},
		{"::1", "::1"},
		{"fe80::1%eth0", "fe80::1%eth0"}, // every host of a link has one
		{"fd00:1::7", "fd00:1::7"},       // and of a network of containers
	} {
		if got := household(netip.MustParseAddr(test.address)).String(); got != test.want {
			t.Errorf("%s: counted for %s, want %s", test.address, got, test.want)
		}
	}
}

// The limits count what they say, and a place is one's own until it is left.
func TestEnter(t *testing.T) {
	const a, b, c = "2001:db8::1", "2001:db8::2", "2001:db8:0:1::1" // a and b are of one /64
	for _, test := range []struct {
		name               string
		most, mostOfClient int
		clients            []string
		want               string // of them that enter, by index
	}{
		{"in all", 2, 0, []string{a, b, c}, "01"},
		{"for each client", 10, 1, []string{a, b, c}, "02"},
		{"both", 2, 1, []string{a, c, c, "192.0.2.1"}, "01"},
		{"no limit for clients", 10, 0, []string{a, a, a}, "012"},
	} {
		var w crowd
		var got strings.Builder
		for i, client := range test.clients {
			conn := &clientConn{address: household(netip.MustParseAddr(client))}
			if w.enter(conn, &Settings{MaxConnections: test.most, MaxConnectionsPerClient: test.mostOfClient}, quietLog) {
				got.WriteString(fmt.Sprint(i))
			}
		}
		if got.String() != test.want {
			t.Errorf("%s: %s enter, want %s", test.name, got.String(), test.want)
		}
	}
}

// The log says once a minute who is turned away, most often first.
func TestTurnedAwayIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := slog.New(slog.NewTextHandler(&out, nil))
		var c crowd
		lines := func() (all []string) {
			for line := range strings.Lines(out.String()) {
				_, who, _ := strings.Cut(line, " limit=")
				all = append(all, strings.TrimSpace(who))
			}
			return all
		}
		c.turnedAway(limitClient, "192.0.2.1", log)
		for range 5 {
			c.turnedAway(limitClient, "192.0.2.2", log)
		}
		for range 2 {
			c.turnedAway(limitClient, "192.0.2.1", log)
		}
		for i := range 10_000 { // nobody makes it remember without end
			c.turnedAway(limitClient, fmt.Sprintf("2001:db8:0:%x::", i), log)
		}
		if n := len(c.turned[limitClient].since); n > maxNamed+1 {
			t.Errorf("%d are remembered by name", n)
		}
		c.turnedAway(limitCrawler, "news", log)
		time.Sleep(time.Minute) // fake clock
		c.turnedAway(limitClient, "192.0.2.3", log)
		want := []string{
			`limits.max_connections_per_client clients="192.0.2.1 (1)" open=0`,
			`crawlers[].max_connections clients="news (1)" open=0`,
			`limits.max_connections_per_client clients="others (9903), 192.0.2.2 (5), 192.0.2.1 (2), 2001:db8:0:0:: (1), 2001:db8:0:10:: (1)" open=0`,
		}
		if got := lines(); !slices.Equal(got, want) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if got := c.turned[limitClient].total; got != 10_009 {
			t.Errorf("%d in all, want 10009", got)
		}
	})
}

// An exchange's times are in the order in which things happen, and 0 where it did
// not come to them.
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
