package proxy

import (
	"crypto/tls"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"

	"robotsgate/proxy/internal/netconn"
)

// A gateListener accepts clients: no more of them than the limits say, and in
// TLS or in clear, as they please.
type gateListener struct {
	net.Listener
	settings *atomic.Pointer[Settings]
	tls      *tls.Config
	crowd    *crowd
	errors   clientErrors
	log      *slog.Logger

	socks      sync.Once
	turning    atomic.Int64 // clients being turned away
	maxTurning int64
}

// Accept waits for the next client that there is room for.
func (l *gateListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		easy := netconn.New(conn)
		c := &clientConn{Conn: easy, tls: l.tls, crowd: l.crowd, socks: l.reportSocks, errors: l.errors, address: household(addrOf(conn))}
		if l.crowd.enter(c, l.settings.Load(), l.log) {
			return c, nil
		}
		if l.turning.Add(1) > l.maxTurning {
			l.turning.Add(-1)
			conn.Close()
			continue
		}
		go func() {
			defer l.turning.Add(-1)
			turnAway(conn)
		}()
	}
}

func addrOf(c net.Conn) netip.Addr {
	if tcp, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap()
	}
	a, _ := netip.ParseAddrPort(c.RemoteAddr().String())
	return a.Addr().Unmap()
}

// household returns whose connections are counted together with those from an
// address: all of a /64 in IPv6, from which one client may take any address
// (RFC 8981). In a network of one's own that would be all there are, so there
// each counts for itself.
func household(a netip.Addr) netip.Addr {
	if !a.Is6() || a.IsPrivate() || a.IsLinkLocalUnicast() || a.IsLoopback() {
		return a
	}
	p, err := a.WithZone("").Prefix(64)
	if err != nil {
		return a
	}
	return p.Addr()
}

func (l *gateListener) reportSocks() {
	l.socks.Do(func() {
		l.log.Warn("a client speaks SOCKS, the gate is an HTTP proxy: give the client its address with http:// in front")
	})
}
