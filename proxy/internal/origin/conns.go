package origin

import (
	"net"
	"net/netip"
	"sync"
)

// Conns are the open connections to origins, of all Transports. The zero value has none.
type Conns struct {
	mu   sync.Mutex
	open map[ends]struct{}
}

// ends are the addresses of a connection, of which a machine has no second one with both.
type ends struct{ local, remote netip.AddrPort }

func endsOf(local, remote net.Addr) ends {
	address := func(a net.Addr) netip.AddrPort {
		p, _ := netip.ParseAddrPort(a.String())
		return netip.AddrPortFrom(p.Addr().Unmap(), p.Port())
	}
	return ends{address(local), address(remote)}
}

// Dialled reports whether a connection to an origin has these addresses.
func (o *Conns) Dialled(local, remote net.Addr) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, ok := o.open[endsOf(local, remote)]
	return ok
}

// Len returns how many connections are open.
func (o *Conns) Len() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.open)
}

// add notes a connection until it is closed.
func (o *Conns) add(conn net.Conn) net.Conn {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return conn
	}
	c := &notedConn{tcp, o, endsOf(tcp.LocalAddr(), tcp.RemoteAddr())}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.open == nil {
		o.open = map[ends]struct{}{}
	}
	o.open[c.ends] = struct{}{}
	return c
}

// A notedConn is in its Conns until it is closed.
type notedConn struct {
	*net.TCPConn
	of   *Conns
	ends ends
}

func (c *notedConn) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c.ends)
	c.of.mu.Unlock()
	return c.TCPConn.Close()
}
