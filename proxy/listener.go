package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"robotsgate/policy"
)

// A gateListener accepts clients: no more of them than the limits say, and in
// TLS or in clear, as they please.
type gateListener struct {
	net.Listener
	limits Limits
	tls    *tls.Config
	crowd  *crowd
	errors clientErrors
	log    *slog.Logger

	mu      sync.Mutex
	total   int
	clients map[netip.Addr]int
	said    time.Time
	socks   sync.Once
}

// full is what a client reads when there is no room for it.
const full = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nContent-Length: 40\r\n" +
	"Retry-After: 1\r\nConnection: close\r\n\r\nrobotsgate: too many open connections.\r\n"

// Accept waits for the next client that there is room for.
func (l *gateListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		client := addrOf(conn)
		if l.enter(client) {
			c := &clientConn{Conn: conn, tls: l.tls, socks: l.reportSocks, errors: l.errors}
			c.leave = sync.OnceFunc(func() {
				l.exit(client)
				l.crowd.leave(c)
			})
			return c, nil
		}
		l.report(client)
		conn.SetWriteDeadline(time.Now().Add(time.Second)) // a fresh socket's buffer takes it at once
		io.WriteString(conn, full)
		conn.Close()
	}
}

func addrOf(c net.Conn) netip.Addr {
	a, _ := netip.ParseAddrPort(c.RemoteAddr().String())
	return a.Addr().Unmap()
}

func (l *gateListener) enter(client netip.Addr) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	most := l.limits.MaxConnectionsPerClient
	if l.total >= l.limits.MaxConnections || most > 0 && l.clients[client] >= most {
		return false
	}
	if l.clients == nil {
		l.clients = map[netip.Addr]int{}
	}
	l.total++
	l.clients[client]++
	return true
}

func (l *gateListener) exit(client netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total--
	if l.clients[client]--; l.clients[client] == 0 {
		delete(l.clients, client)
	}
}

func (l *gateListener) report(client netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.said) < time.Minute {
		return
	}
	l.said = time.Now()
	l.log.Warn("clients are turned away: limits.max_connections or max_connections_per_client is reached", "client", client, "open", l.total)
}

func (l *gateListener) reportSocks() {
	l.socks.Do(func() {
		l.log.Warn("a client speaks SOCKS, the gate is an HTTP proxy: give the client its address with http:// in front")
	})
}

// recordTypeHandshake is the first byte of a TLS connection (RFC 8446, 5.1); no
// HTTP request begins with it.
const recordTypeHandshake = 0x16

// A clientConn speaks TLS if the client begins with it. That is found out at the
// first Read, in the connection's own goroutine and under its deadline.
type clientConn struct {
	net.Conn
	tls    *tls.Config
	leave  func()
	socks  func()    // told of a client that speaks another protocol
	errors io.Writer // told of failed handshakes

	once   sync.Once
	err    error
	secure *tls.Conn // nil: in clear
	first  []byte    // read to look at, and not yet handed on

	crawlers []*policy.Crawler // the crowd's: who is counted for it
	closed   bool              // the crowd's
}

func (c *clientConn) sniff() {
	var b [1]byte
	if _, c.err = io.ReadFull(c.Conn, b[:]); c.err != nil {
		return
	}
	if b[0] == 4 || b[0] == 5 { // the versions of SOCKS; RFC 1928, 3
		c.socks()
		c.err = errors.New("the client speaks SOCKS")
		return
	}
	c.first = b[:]
	if b[0] == recordTypeHandshake {
		c.secure = tls.Server(&replay{Conn: c.Conn, first: c.first}, c.tls)
		c.first = nil
		// Here rather than in Read, where net/http would keep its failure to itself.
		if c.err = c.secure.Handshake(); c.err != nil {
			fmt.Fprintf(c.errors, "TLS handshake error from %s: %v", c.RemoteAddr(), c.err)
		}
	}
}

func (c *clientConn) Read(p []byte) (int, error) {
	c.once.Do(c.sniff)
	switch {
	case c.err != nil:
		return 0, c.err
	case c.secure != nil:
		return c.secure.Read(p)
	case len(c.first) > 0 && len(p) > 0:
		n := copy(p, c.first)
		c.first = c.first[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}

func (c *clientConn) Write(p []byte) (int, error) {
	// Nothing is written before something was read, so that once has been done;
	// asking again keeps the race detector and a careless change honest.
	c.once.Do(func() {})
	if c.secure != nil {
		return c.secure.Write(p)
	}
	return c.Conn.Write(p)
}

func (c *clientConn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}

// CloseWrite ends our half of the connection, which tells a tunnel's client
// that the other end has nothing more to say.
func (c *clientConn) CloseWrite() error {
	if c.secure != nil {
		return c.secure.CloseWrite()
	}
	return closeWrite(c.Conn)
}

func closeWrite(c net.Conn) error {
	if w, ok := c.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return c.Close()
}

// replay is a connection whose first bytes have been read already.
type replay struct {
	net.Conn
	first []byte
}

func (r *replay) Read(p []byte) (int, error) {
	if len(r.first) > 0 {
		n := copy(p, r.first)
		r.first = r.first[n:]
		return n, nil
	}
	return r.Conn.Read(p)
}

func (r *replay) CloseWrite() error { return closeWrite(r.Conn) }

// A feed is a listener whose connections come from CONNECT requests.
type feed struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newFeed() *feed { return &feed{conns: make(chan net.Conn), closed: make(chan struct{})} }

// give hands a connection to whoever accepts; after Close it closes it.
func (f *feed) give(c net.Conn) {
	select {
	case f.conns <- c:
	case <-f.closed:
		c.Close()
	}
}

func (f *feed) Accept() (net.Conn, error) {
	select {
	case c := <-f.conns:
		return c, nil
	case <-f.closed:
		return nil, net.ErrClosed
	}
}

func (f *feed) Close() error {
	f.once.Do(func() { close(f.closed) })
	return nil
}

func (f *feed) Addr() net.Addr { return &net.TCPAddr{} }

// openConns are connections that net/http no longer looks after.
type openConns struct {
	mu    sync.Mutex
	conns map[net.Conn]struct{}
	empty chan struct{} // closed when the last is removed; nil unless somebody waits
}

func (o *openConns) add(c net.Conn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.conns == nil {
		o.conns = map[net.Conn]struct{}{}
	}
	o.conns[c] = struct{}{}
}

func (o *openConns) remove(c net.Conn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.conns, c)
	if len(o.conns) == 0 && o.empty != nil {
		close(o.empty)
		o.empty = nil
	}
}

// wait returns when no connection is left, or the context's error when it ends.
func (o *openConns) wait(ctx context.Context) error {
	o.mu.Lock()
	if len(o.conns) == 0 {
		o.mu.Unlock()
		return nil
	}
	if o.empty == nil {
		o.empty = make(chan struct{})
	}
	empty := o.empty
	o.mu.Unlock()
	select {
	case <-empty:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (o *openConns) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for c := range o.conns {
		c.Close()
	}
}

// clientErrors receives what net/http says about connections: mostly clients
// that leave or don't trust the CA.
type clientErrors struct {
	log  *slog.Logger
	said *atomic.Int64 // when the last warning was given, in Unix seconds
}

func (e clientErrors) Write(p []byte) (int, error) {
	msg := strings.TrimSpace(string(p))
	if slices.ContainsFunc(mistrust, func(sign string) bool { return strings.Contains(msg, sign) }) {
		now, last := time.Now().Unix(), e.said.Load()
		if now-last < 60 || !e.said.CompareAndSwap(last, now) {
			return len(p), nil // one client can fail many times a second
		}
		e.log.Warn("a client does not trust the CA; `robotsgate env` prints what to set", "detail", msg)
		return len(p), nil
	}
	if strings.Contains(msg, "panic serving") {
		e.log.Error("panic while serving a connection; please report it", "detail", msg)
		return len(p), nil
	}
	e.log.Debug("client connection", "detail", msg)
	return len(p), nil
}

// mistrust are the alerts by which a client says so. OpenSSL sends its alert in
// clear where the server, which has switched keys, finds only a bad record.
var mistrust = []string{"unknown certificate", "bad certificate", "unknown certificate authority", "bad record MAC"}

var errNoRequest = errors.New("the client sent nothing through its tunnel")
