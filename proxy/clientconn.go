package proxy

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"

	"robotsgate/proxy/internal/memory"
	"robotsgate/proxy/internal/netconn"
)

// recordTypeHandshake is the first byte of a TLS connection (RFC 8446, 5.1); no
// HTTP request begins with it.
const recordTypeHandshake = 0x16

// A clientConn speaks TLS if the client begins with it. That is found out at the
// first Read, in the connection's own goroutine and under its deadline.
type clientConn struct {
	net.Conn
	tls    *tls.Config
	crowd  *crowd       // that it is counted in
	socks  func()       // told of a client that speaks another protocol
	errors clientErrors // told of failed handshakes

	once   sync.Once
	err    error
	secure *tls.Conn // nil: in clear

	memory  *memory.Client // of the client, for all its connections
	streams atomic.Int32   // HTTP/2 requests in progress
	served  atomic.Uint32  // HTTP/2 requests

	// These are the crowd's.
	address  netip.Addr // whom it is counted for
	crawlers []string   // names of those that it is counted for
	tunnel   bool       // it has become one
	closed   bool
}

// sniff reads what comes first and looks at it. In clear it is the Read's.
func (c *clientConn) sniff(p []byte) (n int) {
	if n, c.err = io.ReadAtLeast(c.Conn, p, 1); c.err != nil {
		return 0
	}
	switch p[0] {
	case 4, 5: // the versions of SOCKS; RFC 1928, 3
		c.socks()
		c.err = errors.New("the client speaks SOCKS")
	case recordTypeHandshake:
		begun := &greeting{Prefixed: netconn.NewPrefixed(c.Conn, bytes.Clone(p[:n]))}
		c.secure = tls.Server(begun, c.tls)
		// Here rather than in Read, where net/http would keep its failure to itself.
		if c.err = c.secure.Handshake(); c.err != nil {
			c.errors.mistrust.failed(begun, tlsProxy, "the gate itself", c.err)
		}
	default:
		return n
	}
	return 0
}

func (c *clientConn) Read(p []byte) (n int, err error) {
	if len(p) == 0 {
		return 0, nil
	}
	c.once.Do(func() { n = c.sniff(p) })
	switch {
	case n > 0 || c.err != nil:
		return n, c.err
	case c.secure != nil:
		return c.secure.Read(p)
	}
	return c.Conn.Read(p)
}

func (c *clientConn) Write(p []byte) (int, error) {
	// Nothing is written before something was read, so that once has been done;
	// asking again keeps the race detector and a careless change honest.
	c.once.Do(func() {})
	if c.secure != nil {
		return c.secure.Write(p)
	}
	return c.Conn.Write(p)
}

func (c *clientConn) Close() error {
	defer c.crowd.leave(c)
	return c.Conn.Close()
}

// easy returns the connection underneath, nil if it is none of the gate's own.
func (c *clientConn) easy() *netconn.Conn {
	easy, _ := c.Conn.(*netconn.Conn)
	return easy
}

// carriesHTTP2 is called before anything of it is written.
func (c *clientConn) carriesHTTP2() {
	if easy := c.easy(); easy != nil {
		easy.CarriesHTTP2()
	}
}

// unjoin is called when no stream of HTTP/2 is open: what is written then is the end of one.
func (c *clientConn) unjoin() {
	if easy := c.easy(); easy != nil {
		easy.CancelHold()
	}
}

// reset breaks the connection off: the other end reads an error, not an end.
func (c *clientConn) reset() {
	if tcp, ok := c.Conn.(interface{ SetLinger(sec int) error }); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// CloseWrite ends our half of the connection, which tells a tunnel's client
// that the other end has nothing more to say.
func (c *clientConn) CloseWrite() error {
	if c.secure != nil {
		return c.secure.CloseWrite()
	}
	return netconn.CloseWrite(c.Conn)
}

// A greeting is a client's connection that begins with TLS, before the handshake.
type greeting struct {
	*netconn.Prefixed
	shown bool // a certificate has been sent
}

func (g *greeting) wasShown() *bool { return &g.shown }
