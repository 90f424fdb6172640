// Package netconn has the network connections of the gate's clients and origins. Start with [New]: a [Conn] has
// deadlines that are cheap to set, and can put small writes together. A [Socket] reads from a connection
// without waiting.
package netconn

import (
	"errors"
	"net"
)

// A Conn is a connection with cheap deadlines, see deadline, and with writes that can be put together, see coalescer.
type Conn struct {
	net.Conn
	read, write deadline
	coalescer   coalescer
	nothing     bool // see ReadNothing
}

// New returns a Conn over conn, which nothing else may use then.
func New(conn net.Conn) *Conn {
	return &Conn{Conn: conn, read: deadline{set: conn.SetReadDeadline}, write: deadline{set: conn.SetWriteDeadline}}
}

// ReadNothing makes Read return [ErrWouldBlock] until it is called with false: a [crypto/tls.Conn] above then returns only
// what it has received already.
func (c *Conn) ReadNothing(on bool) { c.nothing = on }

// ErrWouldBlock is the error of a Read that does not wait. It is temporary, so that crypto/tls can go on after it.
var ErrWouldBlock net.Error = wouldBlock{}

type wouldBlock struct{}

func (wouldBlock) Error() string   { return "nothing can be read without waiting" }
func (wouldBlock) Timeout() bool   { return true }
func (wouldBlock) Temporary() bool { return true }

func (c *Conn) Read(p []byte) (int, error) {
	if c.nothing {
		return 0, ErrWouldBlock
	}
	for {
		n, err := c.Conn.Read(p)
		if n > 0 || !c.read.early(err) {
			return n, err
		}
	}
}

// writeOne writes p to the connection underneath.
func (c *Conn) writeOne(p []byte) (written int, err error) {
	for {
		n, err := c.Conn.Write(p[written:])
		written += n
		if !c.write.early(err) {
			return written, err
		}
	}
}

// writeAll writes the buffers to the connection underneath, and consumes them.
func (c *Conn) writeAll(buffers net.Buffers) (written int, err error) {
	for {
		n, err := buffers.WriteTo(c.Conn)
		written += int(n)
		if !c.write.early(err) {
			return written, err
		}
	}
}

// CloseWrite closes the connection for writing.
func (c *Conn) CloseWrite() error { return CloseWrite(c.Conn) }

// NetConn returns the connection underneath.
func (c *Conn) NetConn() net.Conn { return c.Conn }

// SetLinger is that of [net.TCPConn].
func (c *Conn) SetLinger(sec int) error {
	if tcp, ok := c.Conn.(interface{ SetLinger(sec int) error }); ok {
		return tcp.SetLinger(sec)
	}
	return errors.ErrUnsupported
}
