package proxy

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"robotsgate/policy/canonical"
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

// connect answers CONNECT. It passes the tunnel to the inner server, which decides about every
// request in it. The requests in a tunnel to a passthrough host cannot be seen: passThrough makes
// one decision for the whole host.
func (p *Proxy) connect(w http.ResponseWriter, r *http.Request) {
	s := p.settings.Load()
	target, err := canonical.ParseTarget("https", r.RequestURI, "/")
	if _, port, perr := net.SplitHostPort(r.RequestURI); err == nil && (perr != nil || port == "") {
		err = errors.New("CONNECT needs a host and a port")
	}
	if err != nil {
		p.serve(w, r, s, target, badRequest(err))
		return
	}
	p.openTunnel(&opening{w, r, s, target, ""})
}

// An opening is how a tunnel begins: with a CONNECT, or with a connection in TLS that was
// redirected to the gate. Then r is a CONNECT that stands for it, and w an unansweredWriter.
type opening struct {
	w      http.ResponseWriter
	r      *http.Request
	s      *Settings
	target canonical.Target
	port   string // of tunnel
}

// openTunnel is the sequence for all tunnels.
func (p *Proxy) openTunnel(o *opening) {
	own := o.target.Hostname() == ownName // which is open to all, and always to be seen
	if !own && o.s.Passthrough(o.target.Hostname()) {
		p.passThrough(o)
		return
	}
	// A client that has sent no CONNECT could not read a refusal of its tunnel: the requests in it
	// are refused then.
	if !own && o.port == "" && p.refuseTunnel(o) {
		return
	}
	conn, rd, err := o.accept(o.w, p.Limits.HeaderTimeout)
	if err != nil {
		p.Log.Debug("CONNECT", "client", o.r.RemoteAddr, "error", err)
		return
	}
	p.intercept(o, conn, rd)
}

// refuseTunnel answers a CONNECT of which all requests would be refused, and reports whether it is one.
func (p *Proxy) refuseTunnel(o *opening) bool {
	if o.s.Engine.Crawlers().RefuseUnknown {
		// Refuse a CONNECT that no known crawler can have sent, whatever comes through its tunnel. The
		// requests in other tunnels are decided one by one.
		client, _ := netip.ParseAddrPort(o.r.RemoteAddr)
		if _, pr := p.identify(o.s, o.r, client.Addr().Unmap(), true); pr != nil {
			p.serve(o.w, o.r, o.s, o.target, pr)
			return true
		}
	}
	host, port, _ := net.SplitHostPort(o.target.Address())
	if err := o.s.Upstream.CheckLists(host, port); err != nil {
		p.refuseDestination(o, err)
		return true
	}
	return false
}

// intercept passes a tunnel to the inner server, after a TLS handshake if the client begins one. The reader may hold
// bytes that were read of the connection.
func (p *Proxy) intercept(o *opening, conn net.Conn, rd *bufio.Reader) {
	r := o.r
	p.conns.MarkTunnel(connOf(r).client)
	p.silent.add(conn)
	defer p.silent.remove(conn)
	t := newTunnel(o.target)
	t.client, t.login, t.port = connOf(r).client, loginOf(r), o.port
	t.TLSClient = client.TLSClient{Kind: client.KindOf(r), Target: t.authority, Redirected: o.port != ""}
	// Some clients open a tunnel and say nothing, or speak HTTP in clear in it.
	first, err := rd.Peek(1)
	if err != nil {
		p.Log.Debug("CONNECT", "client", r.RemoteAddr, "target", t.authority, "error", "the client sent nothing through its tunnel")
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

func newTunnel(target canonical.Target) *tunnel {
	t := &tunnel{authority: target.Address(), secure: target.Origin()}
	t.host, _, _ = net.SplitHostPort(t.authority)
	return t
}

// accept takes over the connection, and answers a CONNECT with 200. The reader may hold bytes that
// the client has sent after the CONNECT. The deadline of the answer stays set until the caller
// sets another. w is that of o, or one around it.
func (o *opening) accept(w http.ResponseWriter, timeout time.Duration) (net.Conn, *bufio.Reader, error) {
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, nil, err
	}
	_ = conn.SetDeadline(time.Now().Add(timeout))
	if o.port != "" {
		return conn, rw.Reader, nil
	}
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
	target, err := canonical.ParseTarget("https", bracketed(name), "/")
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

// newTunnelExchange returns an exchange for a tunnel as a whole.
func (p *Proxy) newTunnelExchange(o *opening) *exchange {
	target := o.target
	if strings.HasSuffix(target.Address(), ":80") && o.port == "" {
		// Some clients open a tunnel for http as well; the origin in it is another.
		target, _ = canonical.ParseTarget("http", o.r.RequestURI, "/") // read once already
	}
	x := p.newExchange(o.w, o.r, o.s)
	x.target, x.Tunnel, x.Origin = target, true, target.Origin()
	x.URL = x.Origin
	return x
}

// refuseDestination answers a CONNECT to a host or port that the egress rules forbid. No request in the
// tunnel could be sent, and a client that speaks another protocol than HTTP could not read a refusal
// in it.
func (p *Proxy) refuseDestination(o *opening, prohibited error) {
	r := o.r
	x := p.newTunnelExchange(o)
	defer p.finish(x, r)
	x.out.closeAfter = ambiguousFraming(r)
	crawlers := o.s.Engine.Crawlers()
	if k := crawlers.Identify(p.newIdentification(r, x.Client, false).client); k != crawlers.Default || !crawlers.RefuseUnknown {
		x.Crawler = k.Name
	}
	failure(x, prohibited).write(r, x)
}

// passThrough carries a tunnel unseen, after one decision for the whole host.
func (p *Proxy) passThrough(o *opening) {
	r := o.r
	x := p.newTunnelExchange(o)
	defer p.finish(x, r)

	ctx := x.context(r)
	if pr := p.decide(ctx, x, r, x.settings.Engine.DecideHost); pr != nil {
		pr.write(r, x)
		return
	}
	host, port, _ := net.SplitHostPort(o.target.Address())
	origin, err := x.settings.Upstream.Dial(ctx, host, port)
	x.answered(nil) // what comes through the tunnel is not known
	if err != nil {
		failure(x, err).write(r, x)
		return
	}
	defer origin.Close()
	client, rd, err := o.accept(x.out, p.Limits.HeaderTimeout)
	if err != nil {
		x.Error = err.Error()
		return
	}
	_ = client.SetDeadline(time.Time{})
	x.out.status = http.StatusOK
	p.conns.MarkTunnel(connOf(r).client)
	p.open.add(origin)
	defer p.open.remove(origin)
	tunnel := body.Relay{Idle: p.Limits.IdleTimeout, Silence: p.Silence}
	x.out.bytes = tunnel.Between(netconn.Buffered(client, rd), origin)
}
