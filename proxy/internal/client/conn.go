package client

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Types of TLS records (RFC 8446, section 5.1).
const (
	recordTypeAlert     = 0x15
	recordTypeHandshake = 0x16 // the first byte of a TLS connection: no HTTP request begins with it
)

// IsTLS reports whether a connection that begins with this byte is in TLS.
func IsTLS(first byte) bool { return first == recordTypeHandshake }

// A Conn is a client's connection to the gate. If its listener has a configuration for that, it
// speaks TLS if the client begins with it. That is found at the first Read, so that a slow client
// delays only its own connection.
type Conn struct {
	net.Conn
	End func() // called when the server of c has served it

	listener *Listener
	state    connState
	once     sync.Once
	err      error
	secure   *tls.Conn // nil: in clear
	lingers  atomic.Bool
	left     atomic.Bool // the connection goes on as another Conn
	reason   string      // see SetReason; only the goroutine that serves the connection uses it
}

// InTLS reports whether the client speaks TLS to the gate itself.
func (c *Conn) InTLS() bool { return c.secure != nil }

// detect does the first read, and a TLS handshake if the client begins one. In clear the n
// bytes in p are the client's.
func (c *Conn) detect(p []byte) (n int) {
	if n, c.err = io.ReadAtLeast(c.Conn, p, 1); c.err != nil {
		return 0
	}
	switch p[0] {
	case socks4, socks5: // no request of HTTP begins so
		c.err = io.EOF // for net/http, which closes c, and not the connection
		c.listener.Socks(c.leave(), bytes.Clone(p[:n]))
	case recordTypeHandshake:
		// Not in Read, where net/http would log a failure without its reason.
		c.secure, c.err = c.listener.Hints.Handshake(NewPrefixed(c.Conn, bytes.Clone(p[:n])), c.listener.TLS,
			"the gate itself", c.LocalAddr().String())
	default:
		return n
	}
	return 0
}

// leave returns another Conn for the connection, so that the server of c can end with c.
func (c *Conn) leave() *Conn {
	other := &Conn{Conn: c.Conn, listener: c.listener}
	other.once.Do(func() {}) // the first read has been done
	c.listener.Limits.move(c, other)
	c.left.Store(true)
	return other
}

func (c *Conn) Read(p []byte) (n int, err error) {
	if len(p) == 0 {
		return 0, nil
	}
	if c.listener.TLS == nil {
		return c.Conn.Read(p)
	}
	c.once.Do(func() { n = c.detect(p) })
	switch {
	case n > 0 || c.err != nil:
		return n, c.err
	case c.secure != nil:
		return c.secure.Read(p)
	}
	return c.Conn.Read(p)
}

// SetReason gives the next response another text in its status line. Many clients print nothing else of an answer to
// CONNECT, and net/http has only the usual texts.
func (c *Conn) SetReason(text string) { c.reason = text }

func (c *Conn) Write(p []byte) (int, error) {
	// Reads come before writes, so once is done already. This tells the race detector so.
	c.once.Do(func() {})
	const status = len("HTTP/1.1 403 ") // net/http begins a response in a write of its own
	if end := bytes.IndexByte(p, '\r'); c.reason != "" && end >= status {
		text := slices.Concat(p[:status], []byte(c.reason), p[end:])
		c.reason = ""
		if _, err := c.Write(text); err != nil {
			return 0, err
		}
		return len(p), nil
	}
	if c.secure != nil {
		return c.secure.Write(p)
	}
	return c.Conn.Write(p)
}

func (c *Conn) Close() error {
	if c.left.Load() {
		return nil
	}
	if !c.lingers.CompareAndSwap(true, false) {
		defer c.listener.Limits.remove(c)
		return c.Conn.Close()
	}
	_ = CloseWrite(c.Conn)
	_ = c.Conn.SetReadDeadline(time.Now().Add(LingerTime))
	go func() {
		defer c.listener.Limits.remove(c)
		defer c.Conn.Close()
		_, _ = io.Copy(io.Discard, c.Conn)
	}()
	return nil
}

// LingerTime is how long the rest of a body is read after the last response of a connection.
const LingerTime = 5 * time.Second

// Linger lets Close read what the client still sends, until it closes the connection too, for at most LingerTime:
// closing a connection with unread data resets it, and the client may lose the response (RFC 9112, 9.6). net/http
// does so only after it has read 256 KiB in vain, not if a Read of the body fails.
func (c *Conn) Linger() { c.lingers.Store(true) }

// Reset breaks the connection off: the client reads an error, not an end.
func (c *Conn) Reset() {
	c.lingers.Store(false)
	if tcp, ok := c.Conn.(interface{ SetLinger(sec int) error }); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// CloseWrite ends the gate's half of the connection.
func (c *Conn) CloseWrite() error {
	if c.secure != nil {
		return c.secure.CloseWrite()
	}
	return CloseWrite(c.Conn)
}
