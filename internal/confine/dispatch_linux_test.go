//go:build linux && (amd64 || arm64)

package confine

import (
	"io"
	"net"
	"net/netip"
	"testing"
)

// listenHere returns a listener on loopback and its address.
func listenHere(t *testing.T) (net.Listener, netip.AddrPort) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l, l.Addr().(*net.TCPAddr).AddrPort()
}

func connect(t *testing.T, to netip.AddrPort) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", to.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn.(*net.TCPConn)
}

// TestRelay checks that a relay ends each direction by itself: a client may end its request and read the
// answer then.
func TestRelay(t *testing.T) {
	outside, at := listenHere(t)
	inside, entry := listenHere(t)
	go serve(outside, func(conn net.Conn) {
		request, _ := io.ReadAll(conn)
		_, _ = conn.Write(append([]byte("got "), request...))
		conn.Close()
	})
	n := &network{reach: destinations{entry: Reach{Host: at.Addr().String(), Port: at.Port()}}, relays: make(chan struct{}, 1)}
	go serve(inside, func(conn net.Conn) { n.dispatch(conn, reset) })
	conn := connect(t, entry)
	if _, err := conn.Write([]byte("question")); err != nil {
		t.Fatal(err)
	}
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(conn); string(got) != "got question" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestRelayToNothing checks that a client sees an error if the destination cannot be reached.
func TestRelayToNothing(t *testing.T) {
	closed, at := listenHere(t)
	closed.Close()
	inside, entry := listenHere(t)
	n := &network{reach: destinations{entry: Reach{Host: at.Addr().String(), Port: at.Port()}}, relays: make(chan struct{}, 1)}
	go serve(inside, func(conn net.Conn) { n.dispatch(conn, reset) })
	conn, err := net.Dial("tcp", entry.String())
	if err != nil {
		return // the error came early
	}
	defer conn.Close()
	if got, err := io.ReadAll(conn); err == nil {
		t.Errorf("got %q and no error", got)
	}
}

// TestRelaysBounded checks that a command cannot make the gate open connections without end.
func TestRelaysBounded(t *testing.T) {
	outside, at := listenHere(t)
	inside, entry := listenHere(t)
	go serve(outside, func(conn net.Conn) {
		_, _ = conn.Write([]byte("hello"))
		go io.Copy(io.Discard, conn)
	})
	n := &network{reach: destinations{entry: Reach{Host: at.Addr().String(), Port: at.Port()}}, relays: make(chan struct{}, 1)}
	go serve(inside, func(conn net.Conn) { n.dispatch(conn, reset) })
	hello := func(conn net.Conn) bool {
		_, err := io.ReadFull(conn, make([]byte, 5))
		return err == nil
	}
	first := connect(t, entry)
	if !hello(first) {
		t.Fatal("the first connection is not relayed")
	}
	second, err := net.Dial("tcp", entry.String())
	if err == nil {
		defer second.Close()
		if hello(second) {
			t.Error("a connection beyond the bound is relayed")
		}
	}
}

// TestListenIPv6 checks that the stub can listen on an IPv6 address for --reach, which no interface has.
func TestListenIPv6(t *testing.T) {
	loopback, err := socket{Addr: netip.MustParseAddrPort("[::1]:0")}.open()
	if err != nil {
		t.Logf("this system has no IPv6: %v", err)
		return
	}
	loopback.Close()
	file, err := socket{Addr: netip.MustParseAddrPort("[2001:db8::5]:0"), Optional: true}.open()
	if err != nil {
		t.Fatal(err)
	}
	file.Close()
}

// TestMerged checks that connections to several listeners arrive at one, and that none waits for ever
// after its end.
func TestMerged(t *testing.T) {
	m := newMerged(&net.UnixAddr{Name: "inside"})
	for range 2 {
		l, at := listenHere(t)
		go serve(l, m.deliver)
		client := connect(t, at)
		conn, err := m.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if got := conn.RemoteAddr().String(); got != client.LocalAddr().String() {
			t.Errorf("got a connection of %s, want %s", got, client.LocalAddr())
		}
		conn.Close()
	}
	m.Close()
	m.Close()
	if _, err := m.Accept(); err == nil {
		t.Error("a closed listener accepts")
	}
	l, at := listenHere(t)
	go serve(l, m.deliver)
	if _, err := io.ReadAll(connect(t, at)); err != nil {
		t.Errorf("a late connection: got %v, want its end", err)
	}
}
