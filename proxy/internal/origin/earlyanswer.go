package origin

import (
	"errors"
	"net"
	"syscall"
)

// An earlyAnswerConn is a connection to an origin that may answer before it has read a request's body, and reset the
// connection: Go's http.Server does so after "Connection: close". The answer may have arrived by then, but Transport
// does not read it if it can't write the body. So a Write that the reset fails counts as written, and Read tells what
// became of the request: the answer, or the error.
type earlyAnswerConn struct{ net.Conn }

// keepAnswer makes an earlyAnswerConn of the results of a dial.
func keepAnswer(conn net.Conn, err error) (net.Conn, error) {
	if err != nil {
		return nil, err
	}
	return earlyAnswerConn{conn}, nil
}

func (c earlyAnswerConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		return len(p), nil
	}
	return n, err
}

// NetConn returns the connection underneath.
func (c earlyAnswerConn) NetConn() net.Conn { return c.Conn }
