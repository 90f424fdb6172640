// Package proxy is a forward HTTP proxy that enforces robots rules. It asks a
// [policy.Engine] about every request, also inside TLS, refuses what the engine denies,
// and annotates the responses to what it allows.
//
// Start with [New]: it takes [Options] with an engine, an [Upstream] to reach origins
// through, and the certificates to present to clients. Then call [Proxy.Serve] with a
// listener. [Options].Done receives a [Record] of every request.
package proxy

// Where to change what.
//
//	when a request is refused:
//		decide.go
//	the status and the text of a refusal:
//		refusal.go, with pages/refusal.html and pages/refusal.txt; its JSON: document.go
//	when a response is withheld for what it reserves:
//		usage.go, and a case of usage_test.go; what becomes of the rest of it: withheld.go
//	a response header:
//		a file with its annotator, a row of the table in annotate.go, and docs/annotations.md. Model:
//		annotate_row_test.go; today's annotators: annotations.go. TestReadmeServing wants it in a response to a file
//		of internal/demo/pages, once the documentation names it
//	a response header, from lines of robots.txt:
//		the same: Group.Records and File.Records of policy/robotstxt/record.go return the lines by name. Unknown
//		keys are reported by policy/robotstxt/lint/line.go, and misspelt names by
//		policy/robotstxt/internal/syntax/scanner.go
//	a page of the gate's own address:
//		gatepages.go, or Settings.Pages in settings.go for one that another package serves
//	the settings that the gate recommends for a kind of client:
//		pages/gate.txt on the page, proxy/internal/client/kind.go in the log
//	headers that are removed from requests:
//		rerouting.txt for those that change what a server serves, request.go otherwise
//	when a request is signed:
//		sign.go, and a case in sign_test.go; for which crawlers: internal/gate/signing.go
//	the time-out of a response:
//		Options.Silence in settings.go, for which there is no key; how it works: stream.go and
//		proxy/internal/body/idletimer.go
//	the time-out of an upload:
//		Limits.IdleTimeout in settings.go; how it works: proxy/internal/body/upload.go

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
	"sync/atomic"

	"github.com/elazarl/goproxy"

	"robotsgate/proxy/internal/auth"
	"robotsgate/proxy/internal/client"
	"robotsgate/proxy/internal/memory"
)

// A Proxy serves clients until Shutdown.
type Proxy struct {
	Options
	settings   atomic.Pointer[Settings]
	pipeline   *goproxy.ProxyHttpServer
	outer      *http.Server    // serves the connections of clients
	inner      *http.Server    // serves their tunnels
	tunnels    *client.Tunnels // from CONNECT, and redirected connections, to inner
	begin      sync.Once       // of inner
	tls        *tls.Config     // towards clients
	open       openConns       // hijacked connections in use, for Shutdown
	silent     openConns       // tunnels in which the client has sent nothing yet
	conns      client.ConnLimits
	redirected redirections
	address    atomic.Value // a string: where Serve listens
	hints      client.TrustHints
	memory     memory.Budget // of requests in progress
	verifier   *auth.Verifier
	wrong      auth.FailedLogins
	missing    auth.FailedLogins
}

// New returns a proxy that serves when [Proxy.Serve] is called. It is an error if a required
// field is missing.
func New(o Options) (*Proxy, error) {
	// This function is the whole pipeline: every request, plain or from inside a tunnel, HTTP/1.1
	// or HTTP/2, reaches serve, which passes it to goproxy with an exchange. goproxy calls
	// onRequest, and sends what that allows with roundTrip.
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	p := &Proxy{Options: o, pipeline: goproxy.NewProxyHttpServer(), tunnels: client.NewTunnels(), hints: client.TrustHints{Log: o.Log}, verifier: auth.NewVerifier()}
	p.conns.Log, p.conns.Memory, p.conns.Max = o.Log, &p.memory, func() (total, perClient int) {
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
	p.pipeline.KeepHeader = true                                            // prepare has removed what is not for the origin
	p.pipeline.KeepDestinationHeaders = true                                // see moveHeader
	p.pipeline.Logger = slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug) // records of requests have the same
	p.pipeline.OnRequest().DoFunc(func(r *http.Request, ctx *goproxy.ProxyCtx) (*http.Request, *http.Response) {
		x := exchangeOf(r)
		if resp := p.onRequest(x, r); resp != nil {
			p.drain(x, r)
			return r, resp
		}
		ctx.RoundTripper = goproxy.RoundTripperFunc(func(r *http.Request, _ *goproxy.ProxyCtx) (*http.Response, error) {
			return p.roundTrip(x, r), nil
		})
		return r, nil
	})
	p.outer = p.server(p.serveOuter)
	p.outer.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		accepted := c.(*client.Conn)
		return context.WithValue(accepted.Disconnect.ConnContext(ctx), connectionKey{}, &connection{client: accepted})
	}
	p.outer.ConnState = func(c net.Conn, state http.ConnState) { c.(*client.Conn).Disconnect.ConnState(state) }
	p.inner = p.server(p.serveInner)
	p.inner.TLSConfig = p.tls
	p.inner.ConnState = func(c net.Conn, state http.ConnState) {
		t := tunnelOf(c)
		if t.disconnect != nil {
			t.disconnect.ConnState(state)
		}
		if under := t.client.Buffer(); state == http.StateIdle && under != nil {
			under.CancelHold() // no HTTP/2 stream is open: what is written now ends one
		}
		p.hints.ConnState(c, &t.TLSClient, state)
	}
	p.inner.HTTP2 = &http.HTTP2Config{
		MaxConcurrentStreams: maxStreams, MaxReadFrameSize: maxFrame,
		MaxReceiveBufferPerStream: uploadWindow, MaxReceiveBufferPerConnection: uploadWindow,
		WriteByteTimeout: p.Silence, // for a client that does not read frames
	}
	p.inner.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		t := tunnelOf(c)
		if t.disconnect != nil {
			ctx = t.disconnect.ConnContext(ctx)
		}
		return context.WithValue(ctx, connectionKey{}, &connection{t.client, t, t.port != ""})
	}
	return p, nil
}

// Bounds on HTTP/2 with clients.
const (
	uploadWindow = 256 << 10 // bytes that a connection may send before they are read
	maxFrame     = 16 << 10  // bytes; each connection keeps a buffer of this size
	maxStreams   = 100       // requests in progress on a connection
)

func (p *Proxy) server(serve http.HandlerFunc) *http.Server {
	return &http.Server{
		Handler:           p.withStreamLimits(serve),
		MaxHeaderBytes:    p.Limits.MaxHeaderBytes,
		ReadHeaderTimeout: p.Limits.HeaderTimeout,
		IdleTimeout:       p.Limits.IdleTimeout,
		ErrorLog:          log.New(serverLog{p.Log}, "", 0),
		// net/http would answer OPTIONS * itself.
		DisableGeneralOptionsHandler: true,
	}
}

// Serve accepts clients from l until Shutdown, and returns nil then.
func (p *Proxy) Serve(l net.Listener) error {
	p.serveTunnels()
	p.address.Store(l.Addr().String())
	accepted := p.listener(l)
	accepted.TLS = &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, GetCertificate: p.certificate} // for clients that speak TLS to the gate itself
	err := p.outer.Serve(accepted)
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// listener returns a listener that accepts clients within the limits.
func (p *Proxy) listener(l net.Listener) *client.Listener {
	return &client.Listener{
		Listener: p.Descriptors.Listener(l), Limits: &p.conns, Hints: &p.hints, Log: p.Log,
		MaxRejecting: int64(p.Descriptors.Other(client.MaxRejecting)),
	}
}

// serveTunnels makes the inner server serve, until Shutdown.
func (p *Proxy) serveTunnels() {
	p.begin.Do(func() { go p.inner.Serve(p.tunnels) })
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
