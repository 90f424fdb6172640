package client

import (
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// newLimits returns limits whose log is discarded.
func newLimits(total, perClient int) *ConnLimits {
	return &ConnLimits{Log: slog.New(slog.DiscardHandler), Max: func() (int, int) { return total, perClient }}
}

func (l *ConnLimits) addFrom(address string) (*Conn, bool) {
	c := &Conn{}
	_, ok := l.add(c, LimitKey(netip.MustParseAddr(address)))
	return c, ok
}

func TestLimitKey(t *testing.T) {
	for _, test := range []struct{ address, want string }{
		{"192.0.2.7", "192.0.2.7"},
		{"10.0.0.7", "10.0.0.7"},
		{"2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"},
		{"2001:db8:1:2:ffff::1", "2001:db8:1:2::"},
		{"2001:db8:1:3::1", "2001:db8:1:3::"},
		{"::1", "::1"},
		{"fe80::1%eth0", "fe80::1%eth0"}, // every host of a link has such an address
		{"fd00:1::7", "fd00:1::7"},       // as in a network of containers
	} {
		if got := LimitKey(netip.MustParseAddr(test.address)).String(); got != test.want {
			t.Errorf("%s: counted for %s, want %s", test.address, got, test.want)
		}
	}
}

func TestConnLimits(t *testing.T) {
	const a, b, c = "2001:db8::1", "2001:db8::2", "2001:db8:0:1::1" // a and b are in one /64
	for _, test := range []struct {
		name             string
		total, perClient int
		clients          []string
		want             string // of them that are accepted, by index
	}{
		{"in all", 2, 0, []string{a, b, c}, "01"},
		{"for each client", 10, 1, []string{a, b, c}, "02"},
		{"both", 2, 1, []string{a, c, c, "192.0.2.1"}, "01"},
		{"no limit for clients", 10, 0, []string{a, a, a}, "012"},
	} {
		l := newLimits(test.total, test.perClient)
		var got strings.Builder
		for i, client := range test.clients {
			if _, ok := l.addFrom(client); ok {
				got.WriteString(fmt.Sprint(i))
			}
		}
		if got.String() != test.want {
			t.Errorf("%s: %s are accepted, want %s", test.name, got.String(), test.want)
		}
	}
}

// net/http may close a connection twice.
func TestRemoveTwice(t *testing.T) {
	l := newLimits(10, 0)
	one, _ := l.addFrom("192.0.2.1")
	other, _ := l.addFrom("192.0.2.1")
	l.MarkTunnel(one)
	l.remove(one)
	l.remove(one)
	if open, tunnels, _ := l.Counts(); open != 1 || l.clients[netip.MustParseAddr("192.0.2.1")] != 1 || tunnels != 0 {
		t.Errorf("%d connections are counted, %d tunnels; want 1 and 0", open, tunnels)
	}
	l.remove(other)
	if l.conns+len(l.clients)+len(l.crawlers) != 0 {
		t.Errorf("with all connections closed, %v %v %v are counted", l.conns, l.clients, l.crawlers)
	}
}

// A connection counts once for each crawler that uses it, until it closes.
func TestAdmitCrawler(t *testing.T) {
	l := newLimits(10, 0)
	first, _ := l.addFrom("192.0.2.1")
	second, _ := l.addFrom("192.0.2.2")
	for range 2 {
		if !l.AdmitCrawler(first, "small", 1) {
			t.Fatal("the first connection is not admitted")
		}
	}
	if l.AdmitCrawler(second, "small", 1) {
		t.Error("a second connection is admitted")
	}
	if !l.AdmitCrawler(second, "other", 1) {
		t.Error("another crawler is not admitted")
	}
	l.remove(first)
	if l.AdmitCrawler(first, "small", 1) {
		t.Error("a closed connection is admitted")
	}
	if !l.AdmitCrawler(second, "small", 1) {
		t.Error("no connection is admitted after the first has closed")
	}
}

// The log has one line a minute for each limit.
func TestRejectionsAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		l := newLimits(10, 0)
		l.Log = slog.New(slog.NewTextHandler(&out, nil))
		for range 10_000 {
			l.Reject(PerClient, "192.0.2.1")
		}
		l.Reject(PerCrawler, "news")
		time.Sleep(time.Minute) // fake clock
		l.Reject(PerClient, "192.0.2.3")
		var got []string
		for line := range strings.Lines(out.String()) {
			_, rest, _ := strings.Cut(line, " limit=")
			got = append(got, strings.TrimSpace(rest))
		}
		want := []string{
			`limits.max_connections_per_client client=192.0.2.1 others_since_last=0`,
			`crawlers[].max_connections client=news others_since_last=0`,
			`limits.max_connections_per_client client=192.0.2.3 others_since_last=9999`,
		}
		if !slices.Equal(got, want) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if _, _, rejected := l.Counts(); rejected[limits[PerClient]] != 10_001 || rejected[limits[PerCrawler]] != 1 || len(rejected) != 3 {
			t.Errorf("rejected: %v", rejected)
		}
	})
}

func TestAddrOf(t *testing.T) {
	for _, s := range []string{"192.0.2.7:1", "[::ffff:192.0.2.7]:1", "[2001:db8::7]:1", "[fe80::7%eth0]:1"} {
		tcp := net.TCPAddrFromAddrPort(netip.MustParseAddrPort(s))
		want := netip.MustParseAddrPort(tcp.String()).Addr().Unmap()
		if got := AddrOf(connFrom{from: tcp}); got != want {
			t.Errorf("%s: got %v, want %v", s, got, want)
		}
		if got := AddrOf(connFrom{from: textAddr(tcp.String())}); got != want {
			t.Errorf("%s, not TCP: got %v, want %v", s, got, want)
		}
	}
}

// connFrom is a connection with addresses of its own.
type connFrom struct {
	net.Conn
	from net.Addr
}

func (c connFrom) RemoteAddr() net.Addr { return c.from }
func (c connFrom) LocalAddr() net.Addr  { return textAddr("192.0.2.1:9309") }

type textAddr string

func (a textAddr) Network() string { return "text" }
func (a textAddr) String() string  { return string(a) }
