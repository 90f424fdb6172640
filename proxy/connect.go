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

	"robotsgate/policy/canonical"
	"robotsgate/proxy/internal/client"
	"robotsgate/proxy/internal/netconn"
)

// connect answers CONNECT. It passes the tunnel to the inner server, which decides about every
// request in it. The requests in a tunnel to a passthrough host cannot be seen: one decision is made
// for the whole host.
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
	target  canonical.Target
	ctx     context.Context // ends when the client disconnects
	kind    *client.Kind

	writer     http.ResponseWriter // of the CONNECT; nil: there was none
	redirected net.Conn            // the connection, if there was no CONNECT
	port       string              // to which it was redirected, for the tunnel
}

// openTunnel is the sequence for all tunnels. It reports whether the tunnel was opened.
func (p *Proxy) openTunnel(o *opening) (opened bool) {
	if !isOwn(o.target) && o.settings.Passthrough(o.target.Hostname()) {
		return p.passThrough(o)
	}
	conn, rd, err := o.accept(o.writer, p.Limits.HeaderTimeout)
	if err != nil {
		p.Log.Debug("CONNECT", "client", o.inbound.conn.client.RemoteAddr().String(), "error", err)
		return false
	}
	p.intercept(o, conn, rd)
	return true
}

// whole returns what the tunnel leads to as a whole. Some clients open a tunnel for http as well; the origin in it
// is another.
func (o *opening) whole() canonical.Target {
	if address := o.target.Address(); strings.HasSuffix(address, ":80") && o.redirected == nil {
		target, _ := canonical.ParseTarget("http", address, "/") // read once already
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
	in := o.asTunnel(o.whole())
	in.closeAfter = o.closeAfter
	crawler := crawlers.Identify(p.clients.begin(o.ctx, from).Client)
	if crawler == crawlers.Default && crawlers.RefuseUnknown {
		crawler = nil
	}
	p.refuse(o.writer, in, crawler, failure(err, &in, nil))
	return true
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
