package proxy

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"runtime/debug"
	"strconv"
	"time"

	"robotsgate/policy/canonical"
	"robotsgate/proxy/internal/client"
	"robotsgate/proxy/internal/netconn"
)

// A RedirectRefusal is why a redirected connection is closed before any request.
type RedirectRefusal = client.RedirectRefusal

// The reasons.
const (
	NotRedirected = client.NotRedirected
	IsOwn         = client.IsOwn
	NoName        = client.NoName
	BadName       = client.BadName
	BadHello      = client.BadHello
	ClearHTTP2    = client.ClearHTTP2
	NotHTTP       = client.NotHTTP
	Incomplete    = client.Incomplete
)

// Redirections are counts of connections that were redirected to the gate.
type Redirections = client.Redirections

// Redirections counts the connections that [Proxy.ServeTransparent] has accepted.
func (p *Proxy) Redirections() Redirections { return p.redirected.Counts() }

// ServeTransparent accepts connections from l that the network has redirected to the gate, and serves them until Shutdown,
// when it returns nil. It returns an error of Accept that is not temporary. The LocalAddr of an accepted connection is the
// destination that the client has chosen. Only its port is used: the client names the host in the TLS server name or in
// Host. A connection with a method Redirected() bool is refused if that returns false.
func (p *Proxy) ServeTransparent(l net.Listener) error {
	accepted := p.listener(l)
	if !p.redirected.Begin(l) {
		l.Close()
		return nil
	}
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
		case p.redirected.Ended():
			return nil
		case !ok || !temporary.Temporary():
			return err
		}
		// As net/http does: the process is out of file descriptors, say.
		delay = min(max(5*time.Millisecond, 2*delay), time.Second)
		p.redirected.Sleep(delay)
	}
}

// serveRedirected serves a connection that was redirected to the gate.
func (p *Proxy) serveRedirected(c *client.Conn) {
	p.silent.Add(c)
	defer p.silent.Remove(c)
	defer func() {
		if cause := recover(); cause != nil {
			c.Close()
			if !isAbort(cause) {
				p.Log.Error("panic while serving a connection; please report it", "panic", cause, "stack", string(debug.Stack()))
			}
		}
	}()
	port, ok := originalPort(c)
	if !ok {
		p.redirected.Refuse(c, NotRedirected, p.Log)
		return
	}
	_ = c.SetDeadline(time.Now().Add(p.Limits.HeaderTimeout))
	rd := bufio.NewReaderSize(c, client.MaxFirstLine)
	first, err := rd.Peek(1)
	switch {
	case p.Descriptors.d.Dialled(c.RemoteAddr(), c.LocalAddr()): // by now that is known: the dialler has sent something
		p.redirected.Refuse(c, IsOwn, p.Log)
	case err != nil && !errors.Is(err, os.ErrDeadlineExceeded):
		c.Close() // it has sent nothing: a probe of the port, say
	case err != nil:
		p.redirected.Refuse(c, Incomplete, p.Log)
	case client.IsTLS(first[0]):
		p.redirectedTLS(c, netconn.Buffered(c, rd), port)
	default:
		p.redirectedClear(c, rd, port)
	}
}

// originalPort returns the port that the client has connected to. ok is false if the connection was not redirected.
func originalPort(c *client.Conn) (port string, ok bool) {
	if under := c.Buffer(); under != nil {
		if r, can := under.NetConn().(interface{ Redirected() bool }); can && !r.Redirected() {
			return "", false
		}
	}
	a, err := netip.ParseAddrPort(c.LocalAddr().String())
	return strconv.Itoa(int(a.Port())), err == nil && a.Port() != 0
}

// redirectedTLS opens a tunnel to the server name of a connection that begins with TLS.
func (p *Proxy) redirectedTLS(c *client.Conn, conn net.Conn, port string) {
	hello, err := client.ReadHello(conn, c.Memory)
	switch {
	case errors.Is(err, client.ErrNotHello), errors.Is(err, client.ErrLongHello):
		p.redirected.Refuse(c, BadHello, p.Log)
		return
	case err != nil:
		p.redirected.Refuse(c, Incomplete, p.Log)
		return
	}
	defer hello.Release()
	if hello.ServerName == "" {
		p.redirected.Refuse(c, NoName, p.Log)
		return
	}
	target, err := canonical.ParseTarget("https", hello.ServerName+":"+port, "/")
	if _, aerr := netip.ParseAddr(target.Hostname()); err != nil || aerr == nil { // an address is no server name (RFC 6066, 3)
		p.redirected.Refuse(c, BadName, p.Log)
		return
	}
	p.redirected.Serve()
	p.open.Add(c) // Shutdown waits for the decision
	defer p.open.Remove(c)
	p.silent.Remove(c) // intercept adds it again
	o := &opening{
		inbound: newTunnelInbound(p.settings.Load(), &connection{client: c, redirected: true}), target: target, ctx: c.Disconnect.ConnContext(context.Background()),
		kind: client.KindOf(nil), redirected: netconn.NewPrefixed(c, hello.Read), port: port,
	}
	if !p.openTunnel(o) {
		client.SendAlert(c, client.AlertAccessDenied)
		c.Close()
	}
}

// redirectedClear passes a connection to the inner server. Each of its requests names its host.
func (p *Proxy) redirectedClear(c *client.Conn, rd *bufio.Reader, port string) {
	if refused := client.ReadFirstLine(rd); refused != "" {
		p.redirected.Refuse(c, refused, p.Log)
		return
	}
	p.redirected.Serve()
	_ = c.SetDeadline(time.Time{})
	p.silent.Remove(c) // its first request may be there before we have returned
	p.tunnels.Deliver(&tunnel{Conn: netconn.Buffered(c, rd), port: port, client: c, disconnect: c.Disconnect})
}
