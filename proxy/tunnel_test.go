package proxy

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"robotsgate/policy"
)

// A tunnel knows its names from CONNECT on; whatever it is asked of them is answered as
// by reading them again.
func TestTunnelNames(t *testing.T) {
	hosts := []string{"shop.example", "Shop.EXAMPLE.", "127.0.0.1", "[::1]", "[0:0::1]", "xn--bcher-kva.example", "under_score.example"}
	servers := []string{"", "shop.example", "SHOP.example", "shop.example.", "a.shop.example", "127.0.0.1", "::1", "[::1]", "xn--bcher-kva.example", "shop.example:443", "a b", "under_score.example"}
	for _, host := range hosts {
		for _, port := range []string{"443", "80", "8080"} {
			target, err := policy.ParseTarget("https", host+":"+port, "/")
			if err != nil {
				t.Fatal(err)
			}
			tunnel := newTunnel(target)
			for _, scheme := range []string{"http", "https"} {
				again, err := policy.ParseTarget(scheme, tunnel.authority, "/")
				if got, want := tunnel.origin(scheme), again.Origin(); err != nil || got != want {
					t.Errorf("%s:%s: the origin for %s is %s, want %s", host, port, scheme, got, want)
				}
			}
			for _, server := range servers {
				named, err := policy.ParseTarget("https", server, "/")
				want := server == "" || err == nil && named.Hostname() == target.Hostname()
				if got := tunnel.names(server); got != want {
					t.Errorf("%s:%s: names %q: %v, want %v", host, port, server, got, want)
				}
			}
			if again, err := policy.ParseTarget("https", bracketed(tunnel.host), "/"); err != nil || again.Hostname() != tunnel.host {
				t.Errorf("%s:%s: the host %s is not canonical", host, port, tunnel.host)
			}
		}
	}
}

func TestAddrOf(t *testing.T) {
	for _, s := range []string{"192.0.2.7:1", "[::ffff:192.0.2.7]:1", "[2001:db8::7]:1", "[fe80::7%eth0]:1"} {
		tcp := net.TCPAddrFromAddrPort(netip.MustParseAddrPort(s))
		want := netip.MustParseAddrPort(tcp.String()).Addr().Unmap()
		if got := addrOf(visitorAt{tcp}); got != want {
			t.Errorf("%s: got %v, want %v", s, got, want)
		}
		if got := addrOf(visitorAt{textAddr(tcp.String())}); got != want {
			t.Errorf("%s, not TCP: got %v, want %v", s, got, want)
		}
	}
}

type visitorAt struct{ net.Addr }

func (v visitorAt) RemoteAddr() net.Addr             { return v.Addr }
func (v visitorAt) LocalAddr() net.Addr              { return v.Addr }
func (v visitorAt) Read([]byte) (int, error)         { return 0, io.EOF }
func (v visitorAt) Write(p []byte) (int, error)      { return len(p), nil }
func (v visitorAt) Close() error                     { return nil }
func (v visitorAt) SetDeadline(time.Time) error      { return nil }
func (v visitorAt) SetReadDeadline(time.Time) error  { return nil }
func (v visitorAt) SetWriteDeadline(time.Time) error { return nil }

type textAddr string

func (a textAddr) Network() string { return "text" }
func (a textAddr) String() string  { return string(a) }

// A ClientHello that is larger than what net/http reads ahead is put together again,
// whether it comes with CONNECT or after it.
func TestLargeClientHello(t *testing.T) {
	protocols := []string{"http/1.1"}
	for i := range 40 {
		protocols = append(protocols, fmt.Sprintf("%d-%s", i, strings.Repeat("x", 240)))
	}
	w := newWorld(t, options{})
	for _, together := range []bool{false, true} {
		conn := w.dial()
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(patience))
		head := fmt.Sprintf("CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\n\r\n", host(w.https))
		if together {
			conn = &eager{Conn: conn, head: head}
		} else {
			io.WriteString(conn, head)
			if _, err := readHead(conn); err != nil {
				t.Fatal(err)
			}
		}
		inside := tls.Client(conn, &tls.Config{RootCAs: w.roots, ServerName: "127.0.0.1", NextProtos: protocols})
		fmt.Fprintf(inside, "GET /1 HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", host(w.https))
		if answer, err := io.ReadAll(inside); statusOf(string(answer)) != "200" {
			t.Errorf("together: %v: got %q, %v", together, answer, err)
		}
	}
}

// net/http may close a connection twice.
func TestLeaveOnce(t *testing.T) {
	var c crowd
	one, other := &clientConn{address: netip.MustParseAddr("192.0.2.1")}, &clientConn{address: netip.MustParseAddr("192.0.2.1")}
	for _, conn := range []*clientConn{one, other} {
		if !c.enter(conn, &Settings{MaxConnections: 10}, quietLog) {
			t.Fatal("there is no room")
		}
	}
	c.dig(one)
	c.leave(one)
	c.leave(one)
	if c.total != 1 || c.clients[one.address].conns != 1 || c.tunnels != 0 {
		t.Errorf("%d connections are counted, %d of the client, %d tunnels; want 1, 1 and 0", c.total, c.clients[one.address].conns, c.tunnels)
	}
}
