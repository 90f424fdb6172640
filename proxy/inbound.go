package proxy

import (
	"cmp"
	"encoding/base32"
	"encoding/binary"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"robotsgate/policy/canonical"
	"robotsgate/proxy/internal/auth"
	"robotsgate/proxy/internal/client"
)

// A connection is what a request arrived on. Its server puts it into the context of each request.
type connection struct {
	client *client.Conn
	tunnel *tunnel // through client; nil: the request arrived outside of a tunnel
	// redirected is set if the client does not know that it speaks to the gate.
	redirected bool
}

type connectionKey struct{}

func connOf(r *http.Request) *connection {
	return r.Context().Value(connectionKey{}).(*connection)
}

// detector returns what detects that the client disconnects, nil for HTTP/2.
func (c *connection) detector() *client.DisconnectDetector {
	if c.tunnel != nil {
		return c.tunnel.disconnect
	}
	return c.client.Disconnect
}

// A tunnel is a client's connection after CONNECT, with where it leads; or one that was redirected
// to the gate.
type tunnel struct {
	net.Conn
	authority string // canonical host and port, the port always given; "": each request names its host
	host      string // of it, without brackets
	secure    string // the origin that it leads to in TLS
	port      string // of a redirected connection: the port to which the client has connected; "": there was a CONNECT
	client.TLSClient
	client     *client.Conn               // the connection underneath
	disconnect *client.DisconnectDetector // of HTTP/1 requests; nil: HTTP/2
	login      *auth.Login                // that CONNECT came with; nil: none
}

// tunnelOf returns the tunnel that a connection is, or that is below its TLS; nil if there is none.
func tunnelOf(c net.Conn) *tunnel {
	for {
		if t, ok := c.(*tunnel); ok {
			return t
		}
		outer, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return nil
		}
		c = outer.NetConn()
	}
}

// leadsTo returns the origin that the tunnel leads to when it carries this scheme.
func (t *tunnel) leadsTo(scheme string) string {
	if scheme == "https" {
		return t.secure
	}
	target, err := canonical.ParseTarget(scheme, t.authority, "/")
	if err != nil {
		return ""
	}
	return target.Origin()
}

// names reports whether a TLS server name is the tunnel's host. Without one, as
// for addresses (RFC 6066, 3), there is nothing to disagree.
func (t *tunnel) names(server string) bool {
	switch server {
	case "":
		return true
	case t.host:
		return !strings.Contains(server, ":") // an address is no server name
	}
	target, err := canonical.ParseTarget("https", server, "/")
	return err == nil && target.Hostname() == t.host
}

func newTunnel(target canonical.Target) *tunnel {
	t := &tunnel{authority: target.Address(), secure: target.Origin()}
	t.host, _, _ = net.SplitHostPort(t.authority)
	return t
}

// ownName is the gate's host name for its clients: no other host can have a name under .invalid
// (RFC 6761, 6.4). A client that receives a page from it uses a gate and, over https, trusts its
// CA.
const ownName = "robotsgate.invalid"

// isOwn reports whether a target is the gate itself, which is open to all, and always to be seen.
func isOwn(target canonical.Target) bool { return target.Hostname() == ownName }

// An inbound is what a client asks of the gate: a request, or a tunnel as a whole. It is complete before
// the first stage, and no stage changes it, but that permit removes from the header what is not for the origin.
type inbound struct {
	id       string
	start    time.Time
	settings *Settings // in force when it arrived
	conn     *connection
	client   netip.Addr
	login    *auth.Login // nil: none
	method   string
	header   http.Header // nil: of a redirected connection, which has sent no CONNECT

	protoMajor, protoMinor int
	hasBody                bool

	target     canonical.Target
	url        string // for the answer and the record
	origin     string // the beginning of url; empty if that could not be parsed
	tunnel     bool   // it came through a CONNECT tunnel, or is one
	closeAfter bool   // close the connection after the answer; HTTP/1 only
}

// newInbound returns what is known of a request without its target.
func newInbound(s *Settings, r *http.Request) inbound {
	c := connOf(r)
	in := inbound{
		id: newID(), start: time.Now(), settings: s, conn: c, method: r.Method, header: r.Header,
		protoMajor: r.ProtoMajor, protoMinor: r.ProtoMinor, hasBody: r.ContentLength != 0,
		tunnel: c.tunnel != nil && c.tunnel.authority != "", closeAfter: ambiguousFraming(r),
	}
	if a, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		in.client = a.Addr().Unmap()
	}
	if c.tunnel != nil {
		in.login = c.tunnel.login // Proxy-Authorization inside the tunnel is not meant for the gate
	} else {
		in.login = auth.Parse(r.Header["Proxy-Authorization"])
	}
	return in
}

// newTunnelInbound returns what is known of a tunnel for which the client has sent no CONNECT.
func newTunnelInbound(s *Settings, c *connection) inbound {
	in := inbound{id: newID(), start: time.Now(), settings: s, conn: c, method: http.MethodConnect, protoMajor: 1, protoMinor: 1}
	in.client = client.AddrOf(c.client)
	return in
}

// to returns the request with its target.
func (in inbound) to(target canonical.Target) inbound {
	in.target, in.url = target, target.String()
	in.origin = strings.TrimSuffix(in.url, target.Path)
	return in
}

// asTunnel returns the inbound of a tunnel as a whole.
func (in inbound) asTunnel(target canonical.Target) inbound {
	in.target, in.tunnel, in.origin, in.closeAfter = target, true, target.Origin(), false
	in.url = in.origin
	return in
}

// refused returns the request as one that cannot be served: the URL is as the client has sent it, and the
// rest of its body is not read.
func (in inbound) refused(r *http.Request) inbound {
	in.url = requestedURL(r)
	in.closeAfter = in.closeAfter || in.http1() && in.hasBody
	return in
}

func (in *inbound) http1() bool { return in.protoMajor == 1 }

func (in *inbound) http10() bool { return in.protoMajor == 1 && in.protoMinor == 0 }

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

// ambiguousFraming reports whether two readers may frame a request differently: net/http does
// not tell whether there was a Content-Length beside the chunks, or chunks in HTTP/1.0. The
// connection ends with the answer (RFC 9112, 6.1), so that no rest of the body is read as a
// request.
func ambiguousFraming(r *http.Request) bool {
	switch {
	case r.ProtoMajor > 1:
		return false
	case r.ProtoAtLeast(1, 1):
		return len(r.TransferEncoding) > 0
	default:
		return r.ContentLength != 0 || r.Method != http.MethodGet && r.Method != http.MethodHead
	}
}

// newID returns 128 random bits, which need not be hard to guess, as 26 characters of base32.
func newID() string {
	var bits [16]byte
	binary.LittleEndian.PutUint64(bits[:8], rand.Uint64())
	binary.LittleEndian.PutUint64(bits[8:], rand.Uint64())
	var id [26]byte
	idEncoding.Encode(id[:], bits[:])
	return string(id[:])
}

var idEncoding = base32.StdEncoding.WithPadding(base32.NoPadding)
