package proxy

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"os"
	"runtime/debug"
	"time"

	"robotsgate/policy/canonical"
	"robotsgate/proxy/internal/auth"
	"robotsgate/proxy/internal/client"
)

// A ConnRefusal is why a redirected connection, or one of SOCKS, is closed before any request.
type ConnRefusal = client.ConnRefusal

// ConnCounts are counts of connections that were redirected to the gate, or of SOCKS.
type ConnCounts = client.ConnCounts

// Redirections counts the connections that [Proxy.ServeTransparent] has accepted.
func (p *Proxy) Redirections() ConnCounts { return p.redirected.Counts() }

// ServeTransparent accepts connections from l that the network has redirected to the gate, and serves them until Shutdown,
// when it returns nil. It returns an error of Accept that is not temporary. The LocalAddr of an accepted connection is the
// destination that the client has chosen. Only its port is used: the client names the host in the TLS server name or in
// Host. A connection with a method Redirected() bool is refused if that returns false.
func (p *Proxy) ServeTransparent(l net.Listener) error {
	accepted := p.listener(l)
	defer context.AfterFunc(p.ending, func() { l.Close() })()
	p.serveTunnels()
	for delay := time.Duration(0); ; {
		conn, err := accepted.Accept()
		switch temporary, ok := errors.AsType[interface {
			error
			Temporary() bool
		}](err); {
		case err == nil:
			delay = 0
			go p.serveRedirected(conn.(*client.Conn))
			continue
		case p.ending.Err() != nil:
			return nil
		case !ok || !temporary.Temporary():
			return err
		}
		// As net/http does: the process is out of file descriptors, say.
		delay = min(max(5*time.Millisecond, 2*delay), time.Second)
		time.Sleep(delay)
	}
}

// serveRedirected serves a connection that was redirected to the gate.
func (p *Proxy) serveRedirected(c *client.Conn) {
	p.silent.Add(c)
	defer p.silent.Remove(c)
	defer p.recoverConn(c)
	b := &beginning{connection: &connection{client: c, redirected: true}, conn: c, counter: p.redirected}
	var ok bool
	if b.port, ok = client.OriginalPort(c); !ok {
		p.redirected.Refuse(c, client.NotRedirected, p.Log)
		return
	}
	_ = c.SetDeadline(time.Now().Add(p.Limits.HeaderTimeout))
	p.serveBeginning(b, bufio.NewReaderSize(c, client.MaxFirstLine))
}

// recoverConn is deferred: a panic costs the connection, but not the process.
func (p *Proxy) recoverConn(c *client.Conn) {
	if cause := recover(); cause != nil {
		c.Close()
		if !isAbort(cause) {
			p.Log.Error("panic while serving a connection; please report it", "panic", cause, "stack", string(debug.Stack()))
		}
	}
}

// A beginning is what is known of a connection before its first byte in TLS or HTTP: one that the network has redirected
// to the gate, or one after a request of SOCKS.
type beginning struct {
	*connection
	conn    net.Conn // to read from, if its reader is used up
	port    string   // that the client has connected to, or has asked for
	asked   *tunnel  // to where the client has asked for, by SOCKS; nil: it has asked for nothing
	byName  bool     // asked names a host, not an address
	login   *auth.Login
	counter *client.ConnCounter
}

// serveBeginning serves a connection that carries TLS or HTTP. The caller has set a deadline.
func (p *Proxy) serveBeginning(b *beginning, rd *bufio.Reader) {
	c := b.client
	first, err := rd.Peek(1)
	switch {
	case b.redirected && p.OriginConns.Dialled(c.RemoteAddr(), c.LocalAddr()): // by now that is known: the dialler has sent something
		p.redirected.Refuse(c, client.IsOwn, p.Log)
	case err != nil && !errors.Is(err, os.ErrDeadlineExceeded):
		c.Close() // it has sent nothing: a probe of the port, say
		p.recordAsked(b, NothingSent)
	case err != nil:
		p.refuseBeginning(b, client.Incomplete, NothingSent)
	case client.IsTLS(first[0]):
		p.beginTLS(b, client.Buffered(b.conn, rd))
	default:
		p.beginClear(b, rd)
	}
}

// refuseBeginning closes a connection before any request.
func (p *Proxy) refuseBeginning(b *beginning, reason client.ConnRefusal, why string) {
	b.counter.Refuse(b.client, reason, p.Log)
	p.recordAsked(b, why)
}

// recordAsked records the tunnel that the client has asked for by SOCKS, if it has.
func (p *Proxy) recordAsked(b *beginning, why string) {
	if b.asked != nil {
		p.recordUnused(&b.asked.opened, http.StatusOK, why, nil)
	}
}

// beginTLS opens a tunnel to the server name of a connection that begins with TLS, or to where the client has asked for.
func (p *Proxy) beginTLS(b *beginning, conn net.Conn) {
	c := b.client
	hello, err := client.ReadHello(conn)
	switch {
	case errors.Is(err, client.ErrNotHello), errors.Is(err, client.ErrLongHello):
		p.refuseBeginning(b, client.BadHello, TLSFailed)
		return
	case err != nil:
		p.refuseBeginning(b, client.Incomplete, TLSFailed)
		return
	}
	s := p.settings.Load()
	target, refused := b.tlsTarget(hello.ServerName, s.Passthrough)
	if refused != "" {
		p.refuseBeginning(b, refused, TLSFailed)
		return
	}
	b.counter.Serve()
	p.open.Add(c) // Shutdown waits for the decision
	defer p.open.Remove(c)
	p.silent.Remove(c) // intercept adds it again
	o := &opening{
		inbound: newTunnelInbound(s, b.connection, b.login), target: target, ctx: context.Background(),
		begun: client.NewPrefixed(conn, hello.Read), port: b.port,
	}
	_ = c.SetDeadline(time.Time{})        // the decision may take longer
	if s.Passthrough(target.Hostname()) { // it may wait for its turn
		o.ctx, o.unwatch = o.begun.Watch()
		defer o.unwatch()
	}
	if !p.openTunnel(o) {
		client.SendAlert(c, client.AlertAccessDenied)
		c.Close()
	}
}

// tlsTarget returns what a connection in TLS leads to, by its server name, or why it is refused.
func (b *beginning) tlsTarget(server string, passthrough func(host string) bool) (canonical.Target, client.ConnRefusal) {
	switch {
	case server == "" && b.asked == nil:
		return canonical.Target{}, client.NoName
	case b.asked != nil && (b.byName || server == ""):
		// A request inside is refused if the names disagree. Inside a passthrough tunnel there is none to be seen.
		if !b.asked.names(server) && passthrough(b.asked.host) {
			return canonical.Target{}, client.BadName
		}
		target, _ := canonical.ParseTarget("https", b.asked.authority, "/") // read once already
		return target, ""
	}
	target, err := canonical.ParseTarget("https", server+":"+b.port, "/")
	if _, aerr := netip.ParseAddr(target.Hostname()); err != nil || aerr == nil { // an address is no server name (RFC 6066, 3)
		return target, client.BadName
	}
	return target, ""
}

// beginClear passes a connection to the inner server. Each of its requests names its host.
func (p *Proxy) beginClear(b *beginning, rd *bufio.Reader) {
	c := b.client
	if refused := client.ReadFirstLine(rd); refused != "" {
		p.refuseBeginning(b, refused, NoRequest)
		return
	}
	b.counter.Serve()
	if b.socks {
		p.conns.MarkTunnel(c)
	}
	_ = c.SetDeadline(time.Time{})
	p.silent.Remove(c) // its first request may be there before we have returned
	t := &tunnel{}
	if b.asked != nil {
		t = b.asked
	}
	t.Conn, t.port, t.named, t.socks, t.login, t.client = client.Buffered(b.conn, rd), b.port, b.byName, b.socks, b.login, c
	p.tunnels.Deliver(t)
}
