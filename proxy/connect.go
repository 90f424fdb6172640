package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"robotsgate/policy"
	"robotsgate/proxy/internal/auth"
	"robotsgate/proxy/internal/body"
	"robotsgate/proxy/internal/client"
	"robotsgate/proxy/internal/netconn"
)

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

// origin returns what the tunnel leads to when it carries this scheme.
func (t *tunnel) origin(scheme string) string {
	if scheme == "https" {
		return t.secure
	}
	target, err := policy.ParseTarget(scheme, t.authority, "/")
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
	target, err := policy.ParseTarget("https", server, "/")
	return err == nil && target.Hostname() == t.host
}

// connect answers CONNECT. It passes the tunnel to the inner server, which decides about every
// request in it. The requests in a tunnel to a passthrough host cannot be seen: one decision is made
// for the whole host.
func (p *Proxy) connect(w http.ResponseWriter, r *http.Request) {
	s := p.settings.Load()
	target, err := policy.ParseTarget("https", r.RequestURI, "/")
	if _, port, perr := net.SplitHostPort(r.RequestURI); err == nil && (perr != nil || port == "") {
		err = errors.New("CONNECT needs a host and a port")
	}
	if err != nil {
		p.serve(w, r, s, target, badRequest(err))
		return
	}
	o := &opening{inbound: newInbound(s, r), target: target, ctx: r.Context(), kind: client.KindOf(r), writer: w}
	if !isOwn(target) && !s.Passthrough(target.Hostname()) && p.refuseTunnel(o, r) {
		return
	}
	p.openTunnel(o)
}

// An opening is a tunnel that a client asks for: with a CONNECT, or with a connection in TLS that was
// redirected to the gate.
type opening struct {
	inbound // without target
	target  policy.Target
	ctx     context.Context // ends when the client disconnects
	kind    *client.Kind

	writer     http.ResponseWriter // of the CONNECT; nil: there was none
	redirected net.Conn            // the connection, if there was no CONNECT
	port       string              // to which it was redirected, for the tunnel
}

// isOwn reports whether a target is the gate itself, which is open to all, and always to be seen.
func isOwn(target policy.Target) bool { return target.Hostname() == ownName }

// openTunnel is the sequence for all tunnels. It reports whether the tunnel was opened.
func (p *Proxy) openTunnel(o *opening) (opened bool) {
	if !isOwn(o.target) && o.settings.Passthrough(o.target.Hostname()) {
		x := &exchange{p: p, inbound: o.asTunnel(o.origin()), opening: o}
		p.handle(x, o.writer, nil, nil)
		return x.out.hijacked != nil
	}
	conn, rd, err := o.accept(o.writer, p.Limits.HeaderTimeout)
	if err != nil {
		p.Log.Debug("CONNECT", "client", o.inbound.conn.client.RemoteAddr().String(), "error", err)
		return false
	}
	p.intercept(o, conn, rd)
	return true
}

// origin returns what the tunnel leads to as a whole. Some clients open a tunnel for http as well; the origin in it
// is another.
func (o *opening) origin() policy.Target {
	if address := o.target.Address(); strings.HasSuffix(address, ":80") && o.redirected == nil {
		target, _ := policy.ParseTarget("http", address, "/") // read once already
		return target
	}
	return o.target
}

// refuseTunnel answers a CONNECT of which all requests would be refused, and reports whether it is one. A
// client that has sent no CONNECT could not read the answer: the requests in its tunnel are refused then.
func (p *Proxy) refuseTunnel(o *opening, r *http.Request) bool {
	crawlers := o.settings.Engine.Crawlers()
	from := senderOf(&o.inbound)
	if crawlers.RefuseUnknown {
		// Refuse a CONNECT that no known crawler can have sent, whatever comes through its tunnel. The
		// requests in other tunnels are decided one by one. Their User-Agents are not known yet, so every
		// pattern for User-Agents matches.
		unseen := from
		unseen.AnyAgent = true
		if _, no := p.clients.identify(o.ctx, crawlers, unseen); no != nil {
			p.serve(o.writer, r, o.settings, o.target, no)
			return true
		}
	}
	// No request in the tunnel could be sent to a destination that the egress rules forbid, and a client that
	// speaks another protocol than HTTP could not read a refusal in it.
	host, port, _ := net.SplitHostPort(o.target.Address())
	err := o.settings.Upstream.CheckLists(host, port)
	if err == nil {
		return false
	}
	x := &exchange{p: p, inbound: o.asTunnel(o.origin())}
	x.closeAfter = o.closeAfter
	if k := crawlers.Identify(p.clients.begin(o.ctx, from).Client); k != crawlers.Default || !crawlers.RefuseUnknown {
		x.results.crawler = k.Name
	}
	p.handle(x, o.writer, r, failure(err, &x.inbound, nil))
	return true
}

// passThrough carries a tunnel unseen, after one decision for the whole host. It returns the answer if there is no
// tunnel.
func (x *exchange) passThrough(ctx context.Context) *answer {
	if no := x.decide(ctx, x.settings.Engine.DecideHost); no != nil {
		return no
	}
	p, o := x.p, x.opening
	host, port, _ := net.SplitHostPort(o.target.Address())
	origin, err := x.settings.Upstream.Dial(ctx, host, port)
	x.answered(nil) // what comes through the tunnel is not known
	if err != nil {
		return failure(err, &x.inbound, nil)
	}
	defer origin.Close()
	conn, rd, err := o.accept(&x.out, p.Limits.HeaderTimeout)
	if err != nil {
		x.failed = err.Error()
		return nil
	}
	_ = conn.SetDeadline(time.Time{})
	if o.writer == nil {
		x.out.take(conn)
	}
	x.out.status = http.StatusOK
	p.conns.MarkTunnel(x.inbound.conn.client)
	p.open.add(origin)
	defer p.open.remove(origin)
	tunnel := body.Relay{Idle: p.Limits.IdleTimeout, Silence: p.Silence}
	x.out.bytes = tunnel.Between(netconn.Buffered(conn, rd), origin)
	return nil
}

// intercept passes a tunnel to the inner server, after a TLS handshake if the client begins one. The reader may hold
// bytes that were read of the connection.
func (p *Proxy) intercept(o *opening, conn net.Conn, rd *bufio.Reader) {
	under := o.inbound.conn.client
	p.conns.MarkTunnel(under)
	p.silent.add(conn)
	defer p.silent.remove(conn)
	t := newTunnel(o.target)
	t.client, t.login, t.port = under, o.login, o.port
	t.TLSClient = client.TLSClient{Kind: o.kind, Target: t.authority, Redirected: o.redirected != nil}
	// Some clients open a tunnel and say nothing, or speak HTTP in clear in it.
	first, err := rd.Peek(1)
	if err != nil {
		p.Log.Debug("CONNECT", "client", under.RemoteAddr().String(), "target", t.authority, "error", "the client sent nothing through its tunnel")
		conn.Close()
		return
	}
	t.Conn = netconn.Buffered(conn, rd)
	if client.IsTLS(first[0]) {
		_ = t.SetDeadline(time.Now().Add(p.Limits.HeaderTimeout))
		secure, err := p.hints.Handshake(t, p.tls, &t.TLSClient)
		p.silent.remove(conn) // its first request may be there before we have returned
		if err != nil {
			return
		}
		_ = t.SetDeadline(time.Time{})
		if secure.ConnectionState().NegotiatedProtocol == "h2" {
			if under := t.client.Buffer(); under != nil {
				under.CarriesHTTP2() // before anything of it is written
			}
			p.tunnels.Deliver(secure)
			return
		}
		http1 := client.NewHTTP1InTLS(secure)
		t.disconnect = http1.DisconnectDetector
		p.tunnels.Deliver(http1)
		return
	}
	t.disconnect = t.client.Disconnect
	_ = t.SetDeadline(time.Time{})
	p.silent.remove(conn)
	p.tunnels.Deliver(t)
}

func newTunnel(target policy.Target) *tunnel {
	t := &tunnel{authority: target.Address(), secure: target.Origin()}
	t.host, _, _ = net.SplitHostPort(t.authority)
	return t
}

// accept takes over the connection, and answers a CONNECT with 200. The reader may hold bytes that
// the client has sent after the CONNECT. The deadline of the answer stays set until the caller
// sets another. w is the writer of o, or one around it.
func (o *opening) accept(w http.ResponseWriter, timeout time.Duration) (net.Conn, *bufio.Reader, error) {
	if o.redirected != nil {
		_ = o.redirected.SetDeadline(time.Now().Add(timeout))
		return o.redirected, bufio.NewReaderSize(o.redirected, 16), nil
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

// certificate returns the leaf for the name that the client expects, even if it is not the host of
// its tunnel, so that the client can read why its request is refused. A client that speaks TLS to
// the gate itself, and expects no name, has used the gate's address.
func (p *Proxy) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	name := hello.ServerName
	if t := tunnelOf(hello.Conn); t != nil && t.names(name) {
		return p.Leaf(t.host) // canonical already
	}
	if name == "" {
		name, _, _ = net.SplitHostPort(hello.Conn.LocalAddr().String())
	}
	target, err := policy.ParseTarget("https", bracketed(name), "/")
	if err != nil {
		return nil, err
	}
	return p.Leaf(target.Hostname())
}

func bracketed(host string) string {
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}
