package proxy

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"robotsgate/policy/canonical"
	"robotsgate/proxy/internal/auth"
	"robotsgate/proxy/internal/client"
	"robotsgate/proxy/internal/header"
	"robotsgate/proxy/internal/response"
)

// ownName is the gate's host name for its clients: no other host can have a name under .invalid
// (RFC 6761, 6.4). A client that receives a page from it uses a gate and, over https, trusts its
// CA.
const ownName = "robotsgate.invalid"

// isOwn reports whether a target is the gate itself, which is open to all, and always to be seen.
func isOwn(target canonical.Target) bool { return target.Hostname() == ownName }

// An inbound is what a client asks of the gate: a request, or a tunnel as a whole. It is complete before
// the first stage, and no stage changes it, but that permit removes from the header what is not for the origin.
type inbound struct {
	id       string // 26 characters of base32
	start    time.Time
	settings *Settings // in force when it arrived
	conn     *connection
	client   netip.Addr
	login    *auth.Login // nil: none
	method   string
	header   http.Header // nil: of a redirected connection or one of SOCKS, which has sent no CONNECT

	protoMajor, protoMinor int
	hasBody                bool

	target     canonical.Target
	url        string // for the answer and the record
	origin     string // the beginning of url; empty if that could not be parsed
	tunnel     bool   // it came through a tunnel of CONNECT or SOCKS, or is one
	closeAfter bool   // close the connection after the answer; HTTP/1 only
}

// newInbound returns what is known of a request without its target.
func newInbound(s *Settings, r *http.Request) inbound {
	c := connOf(r)
	if r.ProtoMajor > 1 {
		header.Trim(r.Header)
	}
	in := inbound{
		id: rand.Text(), start: time.Now(), settings: s, conn: c, client: client.AddrOf(c.client), method: r.Method, header: r.Header,
		protoMajor: r.ProtoMajor, protoMinor: r.ProtoMinor, hasBody: r.ContentLength != 0,
		tunnel: c.tunnel != nil && c.tunnel.authority != "", closeAfter: header.AmbiguousFraming(r),
	}
	if c.tunnel != nil {
		in.login = c.tunnel.login // Proxy-Authorization inside the tunnel is not meant for the gate
	} else {
		in.login = auth.Parse(r.Header["Proxy-Authorization"])
	}
	return in
}

// newTunnelInbound returns what is known of a tunnel for which the client has sent no CONNECT.
func newTunnelInbound(s *Settings, c *connection, login *auth.Login) inbound {
	return inbound{id: rand.Text(), start: time.Now(), settings: s, conn: c, client: client.AddrOf(c.client), login: login, method: http.MethodConnect, protoMajor: 1, protoMinor: 1}
}

// lead completes a request with its target.
func (in *inbound) lead(target canonical.Target) {
	in.target, in.url = target, target.String()
	in.origin = strings.TrimSuffix(in.url, target.Path)
}

// asTunnel returns the inbound of a tunnel as a whole.
func (in inbound) asTunnel(target canonical.Target) inbound {
	in.target, in.tunnel, in.origin, in.closeAfter = target, true, target.Origin(), false
	in.url = in.origin
	return in
}

// refuse completes a request that cannot be served: the URL is as the client has sent it, and the rest of its body is
// not read.
func (in *inbound) refuse(r *http.Request) {
	in.url = requestedURL(r)
	in.closeAfter = in.closeAfter || in.http1() && in.hasBody
}

// forResponse returns what is needed to send the response.
func (in *inbound) forResponse() response.Request {
	return response.Request{Conn: in.conn.client, Header: in.header, HTTP1: in.http1(), HasBody: in.hasBody, CloseAfter: in.closeAfter}
}

func (in *inbound) http1() bool { return in.protoMajor == 1 }

func (in *inbound) http10() bool { return in.protoMajor == 1 && in.protoMinor == 0 }

// An opening is a tunnel that a client asks for: with a CONNECT, or with a connection in TLS that was
// redirected to the gate or follows a SOCKS request.
type opening struct {
	inbound // without target
	target  canonical.Target
	ctx     context.Context // ends when the client disconnects

	writer  http.ResponseWriter // of the CONNECT; nil: there was none
	begun   *client.Prefixed    // the connection in TLS, if there was no CONNECT
	unwatch func()              // ends the watch of begun for a client that leaves; nil: there is none
	port    string              // that the client of begun has chosen, for the tunnel
}

// whole returns what the tunnel leads to as a whole. Some clients open a tunnel for http as well; the origin in it
// is another.
func (o *opening) whole() canonical.Target {
	if address := o.target.Address(); strings.HasSuffix(address, ":80") && o.begun == nil {
		target, _ := canonical.ParseTarget("http", address, "/") // read once already
		return target
	}
	return o.target
}

// accept takes over the connection, and answers a CONNECT with 200. The reader may hold bytes that
// the client has sent after the CONNECT. The deadline of the answer stays set until the caller
// sets another. w is the writer of o, or one around it.
func (o *opening) accept(w http.ResponseWriter, timeout time.Duration) (net.Conn, *bufio.Reader, error) {
	if o.begun != nil {
		if o.unwatch != nil {
			o.unwatch()
		}
		_ = o.begun.SetDeadline(time.Now().Add(timeout))
		return o.begun, bufio.NewReaderSize(o.begun, 16), nil
	}
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, nil, err
	}
	_ = conn.SetDeadline(time.Now().Add(timeout))
	if _, err := io.WriteString(conn, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		conn.Close()
		return nil, nil, err
	}
	return conn, rw.Reader, nil
}

// requestedURL returns the URL of a request that cannot be served, without a password, for the
// answer and the log.
func requestedURL(r *http.Request) string {
	sent := r.RequestURI
	if t := connOf(r).tunnel; t != nil && strings.HasPrefix(sent, "/") {
		scheme := "http://"
		if r.TLS != nil {
			scheme = "https://"
		}
		return scheme + cmp.Or(r.Host, t.authority) + sent
	}
	scheme, rest, ok := strings.Cut(sent, "://")
	ends := "/?#"
	if scheme += "://"; !ok { // not a URL, though perhaps meant as one
		scheme, rest, ends = "", sent, "?#"
	}
	end := strings.IndexAny(rest, ends)
	if end < 0 {
		end = len(rest)
	}
	return scheme + rest[strings.LastIndexByte(rest[:end], '@')+1:]
}
