//go:build linux

package transparent

import (
	"net"
	"net/netip"
	"testing"
)

// A connection that no rule has redirected is the listener's own, whatever address of the machine the client has used.
// internal/e2e tests connections that are redirected.
func TestNotRedirected(t *testing.T) {
	for _, c := range []struct{ listen, dial string }{
		{"127.0.0.1:0", "127.0.0.1"},
		{"0.0.0.0:0", "127.0.0.1"},
		{"[::]:0", "127.0.0.1"},
		{"[::]:0", "127.0.0.2"},
		{"[::]:0", "::1"},
		{"[::1]:0", "::1"},
	} {
		l, err := Listen(c.listen)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		_, port, _ := net.SplitHostPort(l.Addr().String())
		client, err := net.Dial("tcp", net.JoinHostPort(c.dial, port))
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		conn, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if conn.(*Conn).Redirected() {
			t.Errorf("%s, %s: it counts as redirected to %s", c.listen, c.dial, conn.LocalAddr())
		}
		if to := netip.MustParseAddrPort(conn.LocalAddr().String()); to.Addr().Unmap() != netip.MustParseAddr(c.dial) {
			t.Errorf("%s, %s: the destination is %s", c.listen, c.dial, to)
		}
	}
}

// With tproxy the local address is the destination: it is the listener's own only if address and port are.
func TestOwn(t *testing.T) {
	for _, c := range []struct {
		listen, to string
		want       bool
	}{
		{"127.0.0.1:9311", "127.0.0.1:9311", true},
		{"127.0.0.1:9311", "127.0.0.1:443", false},
		{"127.0.0.1:9311", "192.0.2.1:9311", false},
		{"[::]:9311", "192.0.2.1:9311", false},
		{"[::]:9311", "192.0.2.1:443", false},
		{"[::]:9311", "[::1]:9311", true},
		{"[::]:9311", "[::ffff:127.0.0.1]:9311", true},
	} {
		l := &Listener{own: netip.MustParseAddrPort(c.listen)}
		if got := l.isOwn(netip.MustParseAddrPort(c.to)); got != c.want {
			t.Errorf("%s, %s: got %v", c.listen, c.to, got)
		}
	}
}
