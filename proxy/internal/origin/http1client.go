package origin

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"time"

	"robotsgate/policy/canonical"
	"robotsgate/proxy/internal/netconn"
)

// An http1Client sends requests without a body over HTTP/1, and leaves all others to next.
//
// It sends each request in the goroutine of its caller. net/http's Transport hands a request
// to one goroutine that writes and another that reads, which is not needed if all is
// written before anything is read: with this client the gate answers 1 KiB at 0.76 of the
// plain forwarder's rate on a busy machine, and at 0.56 without it.
//
// It relies on [http.ReadResponse], and on the kernel to tell without waiting whether the origin
// has closed an idle connection ([netconn.Socket]). TestHTTP1LikeNetHTTP compares what it sends
// and returns with Transport. Config.OnlyNetHTTP switches it off.
type http1Client struct {
	idleConns
	connect func(ctx context.Context, key originKey) (net.Conn, error)
	next    http.RoundTripper
	answer  time.Duration // limit until the head of the response
	total   time.Duration // the same, with all attempts

	http2Origins recent[struct{}] // hosts that prefer HTTP/2
}

// canSend reports whether the client can send a request, as far as is known before it has connected.
func (t *http1Client) canSend(r *http.Request) bool {
	return (r.Body == nil || r.Body == http.NoBody) && r.ContentLength == 0 && len(r.Header["Upgrade"]) == 0 &&
		(r.URL.Scheme == "http" || !t.prefersHTTP2(r.URL.Host))
}

func (t *http1Client) prefersHTTP2(host string) bool {
	_, known := t.http2Origins.get(host)
	return known
}

// RoundTrip sends a request and returns the response. The request's context ends both, until
// the response's body has been read or closed.
func (t *http1Client) RoundTrip(req *http.Request) (*http.Response, error) {
	if !t.canSend(req) {
		return t.next.RoundTrip(req)
	}
	resp, err := t.send(req)
	if other, ok := err.(*speaksHTTP2); ok {
		defer other.closeUnused()
		return t.next.RoundTrip(other.handOver(req))
	}
	return resp, err
}

func (t *http1Client) send(req *http.Request) (*http.Response, error) {
	buf := requestHeads.Get().(*[]byte)
	defer requestHeads.Put(buf)
	head, err := appendRequestHead((*buf)[:0], req)
	if err != nil {
		return nil, err
	}
	if cap(head) <= maxPooledRequestHead {
		*buf = head
	}
	ctx, key := req.Context(), originKey{req.URL.Scheme == "https", req.URL.Host}
	deadline := time.Now().Add(t.total)
	if c := t.get(key); c != nil {
		resp, err := t.exchange(ctx, c, req, head, deadline)
		// The origin may have closed the connection while the request was on its way.
		if err == nil || c.responded || errors.Is(err, os.ErrDeadlineExceeded) || ctx.Err() != nil || !isSafe(req) {
			return resp, err
		}
	}
	conn, err := t.connect(ctx, key)
	if err != nil {
		return nil, err
	}
	return t.exchange(ctx, newHTTP1Conn(key, conn), req, head, deadline)
}

// isSafe reports whether a request may be sent again after the origin may have received it: it has a safe
// method (RFC 9110, section 9.2.1). Whether to repeat an idempotent request, such as PUT, is left to the client.
func isSafe(r *http.Request) bool {
	switch r.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return false
}

// exchange sends a request over a connection, and returns the response with a body that takes care of the connection.
func (t *http1Client) exchange(ctx context.Context, c *http1Conn, req *http.Request, written []byte, deadline time.Time) (*http.Response, error) {
	if trace := httptrace.ContextClientTrace(ctx); trace != nil && trace.GotConn != nil {
		// As in Transport, the hook may set fields for this attempt, or close the connection.
		trace.GotConn(httptrace.GotConnInfo{Conn: c.conn, Reused: c.responded})
		var err error
		if written, err = appendRequestHead(written[:0], req); err != nil {
			closeAtOnce(c.conn)
			return nil, err
		}
	}
	if limit := time.Now().Add(t.answer); limit.Before(deadline) {
		deadline = limit
	}
	resp, err := c.ask(req, written, deadline)
	if err != nil {
		c.unwatch()
		closeAtOnce(c.conn)
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return nil, err
	}
	body := &http1Body{ReadCloser: resp.Body, client: t, c: c, left: resp.ContentLength}
	// After a switch to another protocol, or a status that HTTP does not define, it is unknown what follows.
	body.reusable = !resp.Close && resp.StatusCode >= 200
	if resp.Body == http.NoBody {
		body.end(body.reusable)
		return resp, nil
	}
	resp.Body = body
	return resp, nil
}

// connect opens a connection to an origin. It fails with a *speaksHTTP2 if the origin prefers HTTP/2.
func (u *Transport) connect(ctx context.Context, key originKey) (net.Conn, error) {
	address := canonical.Target{Scheme: "http", Host: key.host}
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
		u.http1.http2Origins.put(key.host, struct{}{})
		other := &speaksHTTP2{}
		other.conn.Store(conn)
		return nil, other
	}
	return conn, nil
}
