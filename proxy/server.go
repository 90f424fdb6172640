package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"log"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"

	"robotsgate/proxy/internal/auth"
	"robotsgate/proxy/internal/client"
)

// New returns a proxy that serves when [Proxy.Serve] is called. It is an error if a required
// field is missing.
func New(o Options) (*Proxy, error) {
	// Every request, plain or from inside a tunnel, HTTP/1.1 or HTTP/2, reaches handle.
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	p := &Proxy{Options: o, forwarder: newForwarder(o.Log), tunnels: client.NewTunnels(), hints: client.TrustHints{Log: o.Log}, clients: clients{log: o.Log, verifier: auth.NewVerifier()}}
	p.redirected, p.socks = client.NewRedirected(), client.NewSocks()
	p.ending, p.end = context.WithCancel(context.Background())
	p.conns.Log, p.conns.Max = o.Log, func() (total, perClient int) {
		s := p.settings.Load()
		return s.MaxConnections, s.MaxConnectionsPerClient
	}
	if err := p.Use(o.Settings); err != nil {
		return nil, err
	}
	p.tls = &tls.Config{
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"h2", "http/1.1"},
		GetCertificate: p.certificate,
		// A usual response is a little longer than a first small record, and clients are near.
		DynamicRecordSizingDisabled: true,
	}
	noALPN := p.tls.Clone()
	noALPN.NextProtos = nil
	p.tls.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if len(hello.SupportedProtos) > 0 && !slices.ContainsFunc(hello.SupportedProtos, func(name string) bool { return slices.Contains(p.tls.NextProtos, name) }) {
			return noALPN, nil // crypto/tls would fail the handshake; most origins speak HTTP/1 then
		}
		return nil, nil
	}
	p.outer = p.server(p.serveOuter)
	p.outer.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		accepted := c.(*client.Conn)
		conn := &connection{client: accepted}
		accepted.End = conn.logins.End
		return context.WithValue(ctx, connectionKey{}, conn)
	}
	p.outer.ConnState = func(c net.Conn, state http.ConnState) {
		if state == http.StateClosed || state == http.StateHijacked {
			c.(*client.Conn).End()
		}
	}
	p.inner = p.server(p.serveInner)
	p.inner.TLSConfig = p.tls
	p.inner.ConnState = func(c net.Conn, state http.ConnState) {
		t := tunnelOf(c)
		if state == http.StateClosed || state == http.StateHijacked {
			t.end()
		}
		p.tunnelState(t, net.Conn(t) != c, state)
	}
	p.inner.HTTP2 = &http.HTTP2Config{
		MaxConcurrentStreams: maxStreams, MaxReadFrameSize: maxFrame,
		MaxReceiveBufferPerStream: uploadWindow, MaxReceiveBufferPerConnection: connectionWindow,
	}
	p.inner.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		t := tunnelOf(c)
		conn := &connection{client: t.client, tunnel: t, redirected: t.port != "" && !t.socks, socks: t.socks}
		t.end = conn.logins.End
		return context.WithValue(ctx, connectionKey{}, conn)
	}
	return p, nil
}

// Bounds on HTTP/2 with clients.
const (
	uploadWindow     = 64 << 10  // bytes that an upload may send before they are read
	connectionWindow = 256 << 10 // bytes that the uploads of a connection may
	maxFrame         = 16 << 10  // bytes; each connection keeps a buffer of this size
	maxStreams       = 100       // requests in progress on a connection
)

func (p *Proxy) server(serve http.HandlerFunc) *http.Server {
	return &http.Server{
		Handler:           serve,
		MaxHeaderBytes:    int(p.Limits.MaxHeaderBytes),
		ReadHeaderTimeout: p.Limits.HeaderTimeout,
		IdleTimeout:       p.Limits.IdleTimeout,
		ErrorLog:          log.New(serverLog{p.Log}, "", 0),
		// net/http would answer OPTIONS * itself.
		DisableGeneralOptionsHandler: true,
	}
}

// serveOuter serves requests that clients send to the gate's own address.
func (p *Proxy) serveOuter(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodConnect:
		p.connect(w, r)
	case strings.HasPrefix(r.RequestURI, "/"):
		p.serveOwn(w, r)
	default:
		target, refused := proxyTarget(r)
		if refused == nil && isOwn(target) {
			p.serveOwn(w, r)
			return
		}
		p.serve(w, r, p.settings.Load(), target, refused)
	}
}

// serveInner serves requests inside tunnels, and of redirected connections.
func (p *Proxy) serveInner(w http.ResponseWriter, r *http.Request) {
	t := connOf(r).tunnel
	if t.carried.CompareAndSwap(false, true) {
		p.open.Remove(t)
	}
	target, refused := tunnelTarget(r, t)
	if refused == nil && isOwn(target) {
		p.serveOwn(w, r)
		return
	}
	p.serve(w, r, p.settings.Load(), target, refused)
}

// Serve accepts clients from l until Shutdown, and returns nil then.
func (p *Proxy) Serve(l net.Listener) error {
	p.serveTunnels()
	p.address.Store(l.Addr().String())
	accepted := p.listener(l)
	accepted.TLS = &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, GetCertificate: p.certificate} // for clients that speak TLS to the gate itself
	accepted.Socks = p.takeSocks
	err := p.outer.Serve(accepted)
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Shutdown stops accepting connections, waits for requests in flight until ctx ends, and
// then closes all connections.
func (p *Proxy) Shutdown(ctx context.Context) error {
	p.end()
	p.silent.Close() // they have no request in flight
	var wg sync.WaitGroup
	var errs [3]error
	wg.Go(func() { errs[0] = p.outer.Shutdown(ctx) })
	wg.Go(func() { errs[1] = p.inner.Shutdown(ctx) })
	wg.Go(func() { errs[2] = p.open.Wait(ctx) })
	wg.Wait()
	p.silent.Close()       // opened in the meantime
	_ = p.silent.Wait(ctx) // for their records
	p.outer.Close()
	p.inner.Close()
	p.open.Close()
	return errors.Join(errs[:]...)
}

// serverLog logs the errors of net/http's servers, most of which are of clients that disconnect.
type serverLog struct{ log *slog.Logger }

func (l serverLog) Write(p []byte) (int, error) {
	text := strings.TrimSpace(string(p))
	if strings.Contains(text, "panic serving") {
		l.log.Error("panic while serving a connection; please report it", "detail", text)
	} else {
		l.log.Debug("client connection", "detail", text)
	}
	return len(p), nil
}
