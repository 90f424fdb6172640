package client

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"time"
)

// A Prefixed is a connection of which some bytes have been read already, and are read again.
type Prefixed struct {
	net.Conn
	first []byte
}

// NewPrefixed returns a connection from which first is read before anything else.
func NewPrefixed(conn net.Conn, first []byte) *Prefixed { return &Prefixed{conn, first} }

// Buffered returns a connection from which the bytes in r are read before anything else. r must
// not be used any more.
func Buffered(conn net.Conn, r *bufio.Reader) net.Conn {
	held, _ := r.Peek(r.Buffered())
	if len(held) == 0 {
		return conn
	}
	return NewPrefixed(conn, held)
}

func (c *Prefixed) Read(p []byte) (int, error) {
	if len(c.first) == 0 {
		return c.Conn.Read(p)
	}
	n := copy(p, c.first)
	if c.first = c.first[n:]; len(c.first) == 0 {
		c.first = nil // do not keep it for as long as the connection
	}
	return n, nil
}

// Watch returns a context that ends when the client closes the connection, from which nothing may be read until stop
// returns. Stop must be called. A byte that the client sends meanwhile is kept, and ends the watch.
func (c *Prefixed) Watch() (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	next, read := make([]byte, 1), make(chan int, 1)
	go func() {
		n, err := c.Conn.Read(next)
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			cancel()
		}
		read <- n
	}()
	return ctx, sync.OnceFunc(func() {
		_ = c.SetReadDeadline(time.Unix(1, 0)) // ends Read
		c.first = append(slices.Clip(c.first), next[:<-read]...)
		_ = c.SetReadDeadline(time.Time{})
	})
}

// CloseWrite closes the connection for writing.
func (c *Prefixed) CloseWrite() error { return CloseWrite(c.Conn) }

// CloseWrite closes a connection for writing, or completely if it cannot be closed for writing alone.
func CloseWrite(c io.Closer) error {
	if w, ok := c.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return c.Close()
}
