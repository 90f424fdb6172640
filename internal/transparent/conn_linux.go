package transparent

import (
	"encoding/binary"
	"net"
	"net/netip"
)

// A Conn is an accepted connection.
type Conn struct {
	*net.TCPConn
	original   netip.AddrPort
	redirected bool
}

// LocalAddr returns the destination that the client has chosen.
func (c *Conn) LocalAddr() net.Addr { return net.TCPAddrFromAddrPort(c.original) }

// Redirected reports whether the connection was redirected. Otherwise its client has connected to the listener itself.
func (c *Conn) Redirected() bool { return c.redirected }

// networkOrder returns the port that a field of a sockaddr holds.
func networkOrder(field uint16) uint16 {
	var b [2]byte
	binary.NativeEndian.PutUint16(b[:], field)
	return binary.BigEndian.Uint16(b[:])
}
