package client

import (
	"crypto/tls"
	"net"
)

// A recordTail is a connection that keeps the last bytes of a TLS handshake. In TLS 1.3 OpenSSL
// sends the alert with which it rejects a certificate in clear, when the gate expects encrypted
// records already. crypto/tls cannot decrypt it and reports "bad record MAC".
type recordTail struct {
	net.Conn
	tail     [7]byte // as long as an alert's record
	complete bool    // the handshake has ended: nothing is kept any more
}

func (c *recordTail) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if !c.complete {
		last := p[max(n-len(c.tail), 0):n]
		copy(c.tail[:], c.tail[len(last):])
		copy(c.tail[len(c.tail)-len(last):], last)
	}
	return n, err
}

// NetConn returns the connection underneath.
func (c *recordTail) NetConn() net.Conn { return c.Conn }

// alert returns the alert in clear that ends what the client has sent. ok is false if there is none.
func (c *recordTail) alert() (alert tls.AlertError, ok bool) {
	const fatal = 2
	head := [6]byte{recordTypeAlert, 3, 3, 0, 2, fatal} // RFC 8446, sections 5.1 and 6
	return tls.AlertError(c.tail[6]), [6]byte(c.tail[:6]) == head
}
