package origin

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync/atomic"

	"robotsgate/policy"
	"robotsgate/proxy/internal/netconn"
)

// connect opens a connection to an origin. One that speaks HTTP/2 is an error that is
// a *speaksHTTP2.
func (u *Transport) connect(ctx context.Context, key originKey) (net.Conn, error) {
	address := policy.Target{Scheme: "http", Host: key.host}
	if !key.secure {
		conn, err := u.dialOrigin(ctx, address.Address())
		if err != nil {
			return nil, err
		}
		return netconn.New(conn), nil
	}
	address.Scheme = "https"
	conn, err := u.dialTLS(ctx, address.Address(), bothHTTP)
	if err != nil {
		return nil, err
	}
	if conn.ConnectionState().NegotiatedProtocol == "h2" {
		u.http1.speakHTTP2.add(key.host)
		other := &speaksHTTP2{}
		other.conn.Store(conn)
		return nil, other
	}
	return conn, nil
}

var bothHTTP = []string{"h2", "http/1.1"}

type onlyHTTP1Key struct{}

// onlyHTTP1 marks a request that can't be sent over HTTP/2, which Transport does not tell
// who opens its connections.
func onlyHTTP1(req *http.Request) *http.Request {
	if len(req.Header["Upgrade"]) == 0 {
		return req
	}
	return req.WithContext(context.WithValue(req.Context(), onlyHTTP1Key{}, true))
}

// protocols returns those that a connection may speak which Transport opens for a request.
func protocols(ctx context.Context) []string {
	if ctx.Value(onlyHTTP1Key{}) != nil {
		return nil // as Transport has it itself: HTTP/1 is what is spoken without a word of it
	}
	return bothHTTP
}

// dialTLS opens a connection over which one of the protocols is spoken, the one that the
// origin likes best. The handshake takes as long as dialling at most.
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
	c := tls.Client(netconn.New(conn), &tls.Config{
		RootCAs: u.tls.RootCAs, MinVersion: u.tls.MinVersion, ServerName: host, NextProtos: protocols,
	})
	ctx, cancel := context.WithTimeout(ctx, u.Dialer.Timeout)
	defer cancel()
	if err := c.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, err
	}
	return c, nil
}

// speaksHTTP2 is why a connection is not the http1Client's, and what hands it over to
// Transport.
type speaksHTTP2 struct {
	conn atomic.Pointer[tls.Conn] // nil once it has been taken
}

func (*speaksHTTP2) Error() string { return "the origin speaks HTTP/2" }

type handOverKey struct{}

// handOver returns a request for whose sake Transport uses the connection, if it opens
// one for it at all.
func (s *speaksHTTP2) handOver(req *http.Request) *http.Request {
	return req.WithContext(context.WithValue(req.Context(), handOverKey{}, s))
}

// handedOver returns the connection that comes with a request, nil if none does.
func handedOver(ctx context.Context) *tls.Conn {
	s, ok := ctx.Value(handOverKey{}).(*speaksHTTP2)
	if !ok {
		return nil
	}
	return s.conn.Swap(nil)
}

func (s *speaksHTTP2) closeUnused() {
	if conn := s.conn.Swap(nil); conn != nil {
		closeAtOnce(conn)
	}
}
