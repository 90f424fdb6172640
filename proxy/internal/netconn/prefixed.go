package netconn

import (
	"bufio"
	"io"
	"net"
)

// A Prefixed is a connection whose first bytes have been read already.
type Prefixed struct {
	net.Conn
	first []byte
}

// NewPrefixed returns a connection from which first is read, and then what conn has.
func NewPrefixed(conn net.Conn, first []byte) *Prefixed { return &Prefixed{conn, first} }

// Buffered returns the connection with what its reader holds put back. The reader must
// not be used any more.
func Buffered(conn net.Conn, r *bufio.Reader) net.Conn {
	held, _ := r.Peek(r.Buffered())
	if len(held) == 0 {
		return conn
	}
	return NewPrefixed(conn, held)
}

func (c *Prefixed) Read(p []byte) (int, error) {
	if len(c.first) > 0 {
		n := copy(p, c.first)
		if c.first = c.first[n:]; len(c.first) == 0 {
			c.first = nil // else it would be kept for as long as the connection
		}
		return n, nil
	}
	return c.Conn.Read(p)
}

func (c *Prefixed) CloseWrite() error { return CloseWrite(c.Conn) }

// CloseWrite closes the writing half of a connection, or all of it where it has no halves.
func CloseWrite(c io.Closer) error {
	if w, ok := c.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return c.Close()
}
