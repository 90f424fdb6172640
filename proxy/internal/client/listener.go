// Package client has the connections from clients to the gate. A [Listener] accepts them
// within the [ConnLimits], as [Conn]s, in TLS or in clear. [Tunnels] is the listener for what
// clients send through CONNECT. [TrustHints] warns of clients that do not trust the CA.
package client

import (
	"crypto/tls"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"
)

// A Listener accepts clients' connections within limits.
type Listener struct {
	net.Listener
	TLS     *tls.Config                 // for clients that speak TLS to the gate itself; nil: the connections are not looked into
	Socks   func(c *Conn, first []byte) // takes over a connection that begins like SOCKS, with what was read of it; used if TLS is not nil
	Limits  *ConnLimits
	Silence time.Duration // how long a client may read nothing of what is sent to it
	Hints   *TrustHints
	Log     *slog.Logger
}

// Accept waits for the next connection that is within the limits.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if err := setUserTimeout(conn, l.Silence); err != nil {
			l.Log.Debug("client connection", "detail", err)
		}
		client := LimitKey(AddrOf(conn))
		c := &Conn{Conn: conn, listener: l}
		limit, ok := l.Limits.add(c, client)
		if ok {
			return c, nil
		}
		l.Limits.Reject(limit, client.String())
		conn.Close()
	}
}

// AddrOf returns the address of the peer.
func AddrOf(c net.Conn) netip.Addr {
	if a, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		return a.AddrPort().Addr().Unmap()
	}
	a, _ := netip.ParseAddrPort(c.RemoteAddr().String())
	return a.Addr().Unmap()
}

// LimitKey returns the address that stands for a client in limits. In IPv6 it is that of the
// /64, in which one client may use any address (RFC 8981). A private network may have a single
// /64 for all its clients, so there each address counts for itself.
func LimitKey(a netip.Addr) netip.Addr {
	if !a.Is6() || a.IsPrivate() || a.IsLinkLocalUnicast() || a.IsLoopback() {
		return a
	}
	p, _ := a.WithZone("").Prefix(64) // it fails for an address that is not valid
	return p.Addr()
}

// Tunnels is a listener. Its connections are tunnels that clients opened with CONNECT.
type Tunnels struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// NewTunnels returns an open listener.
func NewTunnels() *Tunnels { return &Tunnels{conns: make(chan net.Conn), closed: make(chan struct{})} }

// Deliver makes Accept return a connection. After Close it closes the connection, and returns false.
func (t *Tunnels) Deliver(c net.Conn) bool {
	select {
	case t.conns <- c:
		return true
	case <-t.closed:
		c.Close()
		return false
	}
}

func (t *Tunnels) Accept() (net.Conn, error) {
	select {
	case c := <-t.conns:
		return c, nil
	case <-t.closed:
		return nil, net.ErrClosed
	}
}

func (t *Tunnels) Close() error {
	t.once.Do(func() { close(t.closed) })
	return nil
}

func (t *Tunnels) Addr() net.Addr { return &net.TCPAddr{} }
