// Package proxy is the gate as HTTP sees it: a forward proxy that asks package
// policy about every request, also inside TLS, refuses what is denied, and
// annotates what it lets through.
//
// It is the only package that knows goproxy.
package proxy

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/elazarl/goproxy"

	"robotsgate/policy"
	"robotsgate/proxy/internal/auth"
)

// Options are the parts and settings of a Proxy.
type Options struct {
	Settings Settings // in force until others are, see [Proxy.Use]
	// Leaf returns the certificate to show for a host name or address.
	Leaf func(host string) (*tls.Certificate, error)
	// CA returns the certificates that clients must trust, as PEM.
	CA func() []byte
	// Bundle returns the system's roots and those certificates together.
	Bundle func() []byte

	Remembered *policy.TagCache // tags of pages seen before
	Limits     Limits
	// Silence is how long an origin may send nothing in the middle of a response,
	// or a client take nothing of it; 0 is 15 minutes, after which Squid gives up
	// too. Less would cut off clients that read slowly: the kernel lets a writer go
	// on only when a third of its buffer is free, which may be megabytes.
	Silence time.Duration
	Log     *slog.Logger
	Done    func(*Record) // told of every request when it is over; may be nil
	// Descriptors bounds the clients that are being turned away, and what Accept does when
	// there is none left; nil: no bound is known.
	Descriptors *Descriptors
	// Ready is asked before every decision: an error refuses the request. May be nil.
	Ready func() error
}

// Limits bound what clients can take up.
type Limits struct {
	MaxHeaderBytes int
	HeaderTimeout  time.Duration
	IdleTimeout    time.Duration
}

// A Proxy serves clients until Shutdown.
type Proxy struct {
	Options
	settings atomic.Pointer[Settings]
	pipeline *goproxy.ProxyHttpServer
	outer    *http.Server // what clients connect to
	inner    *http.Server // what they find inside their tunnels
	tunnels  *feed        // from CONNECT to inner
	tls      *tls.Config  // towards clients
	open     openConns    // connections in use that net/http has handed over, for Shutdown
	silent   openConns    // tunnels whose client has said nothing yet
	crowd    crowd        // who has how many connections
	errors   clientErrors // what is wrong with clients' connections
	verifier *auth.Verifier
	wrong    auth.WrongLogins
}

// New returns a proxy. This function is the whole pipeline: every request,
// plain or from inside a tunnel, HTTP/1.1 or HTTP/2, comes to serve, which hands
// it to goproxy with an exchange; goproxy asks onRequest, and what is let
// through goes to roundTrip.
func New(o Options) *Proxy {
	if o.Done == nil {
		o.Done = func(*Record) {}
	}
	o.Silence = cmp.Or(o.Silence, 15*time.Minute)
	o.Descriptors = cmp.Or(o.Descriptors, &Descriptors{})
	p := &Proxy{Options: o, pipeline: goproxy.NewProxyHttpServer(), tunnels: newFeed(), errors: clientErrors{o.Log, &mistrust{log: o.Log}}, verifier: auth.NewVerifier()}
	p.Use(o.Settings)
	p.tls = &tls.Config{
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"h2", "http/1.1"},
		GetCertificate: p.certificate,
		// Answers are a little longer than a first record would be; clients are near.
		DynamicRecordSizingDisabled: true,
	}
	noALPN := p.tls.Clone()
	noALPN.NextProtos = nil
	p.tls.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if len(hello.SupportedProtos) > 0 && !slices.ContainsFunc(hello.SupportedProtos, func(name string) bool { return slices.Contains(p.tls.NextProtos, name) }) {
			return noALPN, nil // crypto/tls would end it, where most origins go on with HTTP/1
		}
		return nil, nil
	}
	p.pipeline.KeepHeader = true             // prepare has dropped what is not for the origin
	p.pipeline.KeepDestinationHeaders = true // see passOn
	p.pipeline.Logger = quiet{o.Log}
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
		return context.WithValue(ctx, clientKey{}, c)
	}
	p.outer.ConnState = func(c net.Conn, state http.ConnState) { c.(*clientConn).presence.watch(state) }
	p.inner = p.server(p.serveInner)
	p.inner.TLSConfig = p.tls
	p.inner.ConnState = func(c net.Conn, state http.ConnState) {
		t := tunnelOf(c)
		if _, maybeHTTP2 := c.(*tls.Conn); !maybeHTTP2 {
			t.client.presence.watch(state)
		} else if state == http.StateIdle {
			t.client.unjoin()
		}
		p.errors.mistrust.watch(c, t, state)
	}
	p.inner.HTTP2 = &http.HTTP2Config{
		MaxConcurrentStreams: maxStreams, MaxReadFrameSize: maxFrame,
		MaxReceiveBufferPerStream: uploadWindow, MaxReceiveBufferPerConnection: uploadWindow,
		WriteByteTimeout: p.Silence, // of a client that does not even read frames
	}
	p.inner.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, tunnelKey{}, tunnelOf(c))
	}
	return p
}

func (p *Proxy) server(serve http.HandlerFunc) *http.Server {
	return &http.Server{
		Handler:           p.attended(serve),
		MaxHeaderBytes:    p.Limits.MaxHeaderBytes,
		ReadHeaderTimeout: p.Limits.HeaderTimeout,
		IdleTimeout:       p.Limits.IdleTimeout,
		ErrorLog:          log.New(p.errors, "", 0),
		// It would answer OPTIONS * in the gate's place.
		DisableGeneralOptionsHandler: true,
	}
}

// Serve accepts clients from l until Shutdown; then it returns nil.
func (p *Proxy) Serve(l net.Listener) error {
	go p.inner.Serve(p.tunnels) // ends with Shutdown
	err := p.outer.Serve(&gateListener{Listener: p.Descriptors.Listener(l), settings: &p.settings, maxTurning: int64(p.Descriptors.Other(maxTurning)), tls: p.ownConfig(), crowd: &p.crowd, errors: p.errors, log: p.Log})
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// quiet is goproxy's logger. What it has to say concerns one request, and is in
// that request's record already.
type quiet struct{ log *slog.Logger }

func (q quiet) Printf(format string, v ...any) {
	q.log.Debug("goproxy", "message", format, "values", v)
}
