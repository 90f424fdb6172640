package proxy

import (
	"bufio"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"strings"
	"time"

	"robotsgate/policy/canonical"
	"robotsgate/proxy/internal/client"
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
	o := &opening{inbound: newInbound(s, r), target: target, ctx: r.Context(), writer: w}
	if !isOwn(target) && !s.Passthrough(target.Hostname()) && p.refuseTunnel(o, r) {
		return
	}
	p.openTunnel(o)
}

// openTunnel is the sequence for all tunnels. It reports whether the tunnel was opened.
func (p *Proxy) openTunnel(o *opening) (opened bool) {
	if !isOwn(o.target) && o.settings.Passthrough(o.target.Hostname()) {
		return p.passThrough(o)
	}
	conn, rd, err := o.accept(o.writer, p.Limits.HeaderTimeout)
	if err != nil {
		in := o.asTunnel(o.whole())
		p.recordUnused(&in, 0, NothingSent, err)
		return false
	}
	p.intercept(o, conn, rd)
	return true
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
	p.refuse(o.writer, in, p.clients.likely(o.ctx, crawlers, from), failure(err, &in, nil))
	return true
}

// intercept passes a tunnel to the inner server, after a TLS handshake if the client begins one. The reader may hold
// bytes that were read of the connection.
func (p *Proxy) intercept(o *opening, conn net.Conn, rd *bufio.Reader) {
	under := o.inbound.conn.client
	p.conns.MarkTunnel(under)
	p.silent.Add(conn)
	defer p.silent.Remove(conn)
	t := newTunnel(o)
	t.client, t.login, t.port, t.socks = under, o.login, o.port, o.inbound.conn.socks
	// Some clients open a tunnel and say nothing, or speak HTTP in clear in it.
	first, err := rd.Peek(1)
	if err != nil {
		conn.Close()
		p.recordUnused(&t.opened, http.StatusOK, NothingSent, nil)
		return
	}
	t.Conn = client.Buffered(conn, rd)
	if client.IsTLS(first[0]) {
		_ = t.SetDeadline(time.Now().Add(p.Limits.HeaderTimeout))
		address := conn.LocalAddr().String()
		if o.inbound.conn.redirected {
			address = "" // it is the origin's
		}
		secure, err := p.hints.Handshake(t, p.tls, t.authority, address)
		if err != nil {
			why := TLSFailed
			if client.GaveUp(err) {
				why = TLSGivenUp
			}
			p.recordUnused(&t.opened, http.StatusOK, why, err)
			return
		}
		_ = t.SetDeadline(time.Time{})
		p.deliver(t, conn, secure, NoneAfterTLS)
		return
	}
	_ = t.SetDeadline(time.Time{})
	p.deliver(t, conn, t, NoRequest)
}

// deliver passes what a tunnel carries to the inner server. After Shutdown has closed that server, the tunnel is recorded
// as one without a request.
func (p *Proxy) deliver(t *tunnel, conn, carries net.Conn, why string) {
	p.open.Add(t)         // Shutdown waits for its record
	p.silent.Remove(conn) // its first request may be there before we have returned
	if !p.tunnels.Deliver(carries) {
		p.recordUnused(&t.opened, http.StatusOK, why, nil)
		p.open.Remove(t)
	}
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
