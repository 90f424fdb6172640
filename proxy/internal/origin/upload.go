package origin

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"

	"robotsgate/proxy/internal/body"
)

// errHTTP1 is the error of a request with a body for which there is no HTTP/2, contrary to what is known of the host.
var errHTTP1 = errors.New("the origin speaks HTTP/1, and no HTTP/2 as before")

// withUpload returns a request that has a body. Its connection ends with it, unless that is one over HTTP/2.
//
// An HTTP/1 server may answer without having read the body, and then read the body as its next request: Python's
// http.server and webfs do so. With "Connection: close" (RFC 9112, section 9.6) the server must not read another request.
// Not to use the connection again would not suffice: the server would have answered, and the crawler chooses the body.
// Over HTTP/2 the frames say where a request ends.
//
// With Request.Close Transport does both, but would close a connection over HTTP/2 as well. It is not set if the host
// has spoken HTTP/2. If the connection is one over HTTP/1 nevertheless, withUpload's trace closes it before anything
// is sent, and cancels the request with errHTTP1.
func (n *netHTTP) withUpload(req *http.Request, limit *body.IdleTimer, cancel context.CancelCauseFunc) *http.Request {
	upload := &limitedBody{ReadCloser: req.Body, limit: limit}
	if version, _ := n.versions.get(req.URL.Host); version == 2 && req.URL.Scheme == "https" {
		req = req.WithContext(httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
			GotConn: func(info httptrace.GotConnInfo) {
				if conn, ok := info.Conn.(*tls.Conn); ok && conn.ConnectionState().NegotiatedProtocol == "h2" {
					return
				}
				upload.withheld.Store(true)
				info.Conn.Close()
				cancel(errHTTP1)
			},
		}))
	} else if !n.keepsUpload(req) {
		req.Close = true
	}
	req.Body = upload
	return req
}

// keepsUpload reports whether the connection of a request with a body goes on: the messages of a login need the same one
// (RFC 4559, 6), and some clients send them with the body. The servers that ask for such logins read all of it.
func (n *netHTTP) keepsUpload(req *http.Request) bool {
	if n.challenged == nil {
		return false
	}
	_, asked := n.challenged.get(req.URL.Host)
	return asked
}

// A limitedBody is a request's body that pauses the limit on the time until the response while it is read: the
// client may take long to send it. After each read the time starts again.
type limitedBody struct {
	io.ReadCloser
	limit    *body.IdleTimer
	withheld atomic.Bool // it is sent on another connection: Transport can neither read nor close it
}

func (b *limitedBody) Read(p []byte) (int, error) {
	if b.withheld.Load() {
		return 0, errHTTP1
	}
	b.limit.Pause()
	defer b.limit.Start()
	return b.ReadCloser.Read(p)
}

func (b *limitedBody) Close() error {
	if b.withheld.Load() {
		return nil
	}
	return b.ReadCloser.Close()
}
