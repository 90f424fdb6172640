package origin

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync/atomic"

	"robotsgate/proxy/internal/netconn"
)

var bothHTTP = []string{"h2", "http/1.1"}

type onlyHTTP1Key struct{}

// onlyHTTP1 marks a request that cannot be sent over HTTP/2: Transport does not say so when it calls DialTLSContext.
func onlyHTTP1(req *http.Request) *http.Request {
	if len(req.Header["Upgrade"]) == 0 {
		return req
	}
	return req.WithContext(context.WithValue(req.Context(), onlyHTTP1Key{}, true))
}

// protocols returns what is offered by ALPN (RFC 7301) on a connection that Transport opens for a request.
func protocols(ctx context.Context) []string {
	if ctx.Value(onlyHTTP1Key{}) != nil {
		return nil // as Transport does: without ALPN the protocol is HTTP/1
	}
	return bothHTTP
}

// dialTLS opens a connection and offers protocols on it. The handshake may take as long as dialling.
func (u *Transport) dialTLS(ctx context.Context, address string, protocols []string) (*tls.Conn, error) {
	conn, err := u.dialOrigin(ctx, address)
	if err != nil {
		return nil, err
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		conn.Close()
		return nil, err
	}
	c := tls.Client(netconn.New(earlyAnswerConn{conn}), &tls.Config{
		RootCAs: u.tls.RootCAs, MinVersion: u.tls.MinVersion, ServerName: host, NextProtos: protocols,
	})
	limited, cancel := context.WithTimeout(ctx, u.Dialer.Timeout)
	defer cancel()
	if err := c.HandshakeContext(limited); err != nil {
		conn.Close()
		if ctx.Err() == nil && limited.Err() != nil {
			return nil, errHandshake
		}
		return nil, err
	}
	return c, nil
}

// speaksHTTP2 is the error of a connection on which the origin chose HTTP/2. Transport can use the connection.
type speaksHTTP2 struct {
	conn atomic.Pointer[tls.Conn] // nil after Transport has taken it
}

func (*speaksHTTP2) Error() string { return "the origin speaks HTTP/2" }

type handOverKey struct{}

// handOver returns the request with the connection in its context, for handedOver.
func (s *speaksHTTP2) handOver(req *http.Request) *http.Request {
	return req.WithContext(context.WithValue(req.Context(), handOverKey{}, s))
}

// handedOver takes the connection from a request's context. It returns nil if there is none.
func handedOver(ctx context.Context) *tls.Conn {
	s, ok := ctx.Value(handOverKey{}).(*speaksHTTP2)
	if !ok {
		return nil
	}
	return s.conn.Swap(nil)
}

// closeUnused closes the connection if Transport has not taken it: it may have had another one.
func (s *speaksHTTP2) closeUnused() {
	if conn := s.conn.Swap(nil); conn != nil {
		closeAtOnce(conn)
	}
}
