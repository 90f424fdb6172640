//go:build linux && (amd64 || arm64)

package confine

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"
)

// merged is a listener that accepts the connections of several listeners.
type merged struct {
	addr     net.Addr
	accepted chan net.Conn
	closed   chan struct{}
	close    sync.Once
}

func newMerged(addr net.Addr) *merged {
	return &merged{addr: addr, accepted: make(chan net.Conn), closed: make(chan struct{})}
}

// Accept implements net.Listener.
func (m *merged) Accept() (net.Conn, error) {
	select {
	case conn := <-m.accepted:
		return conn, nil
	case <-m.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener. It does not close the listeners that are merged: connections to them
// are closed from now on.
func (m *merged) Close() error {
	m.close.Do(func() { close(m.closed) })
	return nil
}

// Addr implements net.Listener.
func (m *merged) Addr() net.Addr { return m.addr }

// deliver gives a connection to Accept.
func (m *merged) deliver(conn net.Conn) {
	select {
	case m.accepted <- conn:
	case <-m.closed:
		conn.Close()
	}
}

// serve calls handle for each connection, until the listener is closed. An error such as that of too
// many open files passes.
func serve(l net.Listener, handle func(net.Conn)) {
	for {
		conn, err := l.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			time.Sleep(acceptPause)
		default:
			handle(conn)
		}
	}
}

// destinations are those of Options.Reach, by the address at which the command finds them.
type destinations map[netip.AddrPort]Reach

// of returns the destination that a client has chosen by the address to which it has connected.
func (d destinations) of(conn net.Conn) (Reach, bool) {
	local, ok := conn.LocalAddr().(*net.TCPAddr)
	if !ok {
		return Reach{}, false
	}
	addr := local.AddrPort()
	r, is := d[netip.AddrPortFrom(addr.Addr().Unmap(), addr.Port())]
	return r, is
}

const dialTimeout = 30 * time.Second

// relay connects a connection of the command with a destination outside, until both have ended.
func (r Reach) relay(inside net.Conn) {
	defer inside.Close()
	outside, err := net.DialTimeout("tcp", r.hostPort(), dialTimeout)
	if err != nil {
		reset(inside)
		return
	}
	defer outside.Close()
	var both sync.WaitGroup
	both.Go(func() { pass(outside, inside) })
	both.Go(func() { pass(inside, outside) })
	both.Wait()
}

// pass copies from one connection to the other until the end of the data, and then closes the other for
// writing. After an error it closes both.
func pass(to, from net.Conn) {
	_, err := io.Copy(to, from)
	half, ok := to.(interface{ CloseWrite() error })
	if err != nil || !ok {
		to.Close()
		from.Close()
		return
	}
	_ = half.CloseWrite()
}

// reset ends a connection so that the client sees an error, and not an empty answer.
func reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	conn.Close()
}
