// Package proxy is a forward HTTP proxy that enforces robots rules. It asks a
// [policy.Engine] about every request, also inside TLS, refuses what the engine denies,
// and annotates the responses to what it allows.
//
// Start with [New]: it takes [Options] with an engine, an [Upstream] to reach origins
// through, and the certificates to present to clients. Then call [Proxy.Serve] with a
// listener. [Options].Done receives a [record.Record] of every request.
package proxy

// Where to change what, beside the table of docs/design.md.
//
//	which requests are malformed, and which URL a request is for:
//		target.go
//	what is refused before any request:
//		socks.go and transparent.go; the bytes: proxy/internal/client
//	when a response is withheld for what it reserves:
//		usage.go, and a case of usage_test.go; its words: proxy/internal/response/reserved.go
//	the order of the stages, and a new one:
//		handle.go. A stage takes values and returns a result; its place in the results is in record.go
//	a page of the gate's own address:
//		gatepages.go
//	headers that are removed from requests:
//		proxy/internal/header/rerouting.txt for those that change what a server serves, header.go otherwise
//	time-outs:
//		Options.Silence of a response, Limits.IdleTimeout of an upload; proxy/internal/body/idletimer.go

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"robotsgate/internal/record"
	"robotsgate/policy/cache"
	"robotsgate/proxy/internal/client"
)

// Options are the parts and settings of a Proxy. Only Settings.Engine, Settings.Upstream
// and Leaf are required; the zero value of every other field is a documented default.
type Options struct {
	Settings Settings // in force until [Proxy.Use] sets others
	// Leaf returns the certificate to present for a host name or address.
	Leaf func(host string) (*tls.Certificate, error)
	// CA returns the certificates that clients must trust, as PEM; nil: there is no page
	// to download them from.
	CA func() []byte
	// Bundle returns the system's roots and those certificates together, as PEM; nil:
	// there is no page to download it from.
	Bundle func() []byte
	// StatusPage is the URL of the status page, to which the gate's own page links on the gate's machine; "": none.
	StatusPage string

	Remembered *cache.Tags // tags of pages seen before; nil: none are kept
	Limits     Limits
	// Silence is how long an origin may send nothing in the middle of a response, or a
	// client may read nothing of it; 0: 15 minutes, as in Squid. A shorter time would cut
	// off clients that read slowly: the kernel lets a writer go on only when a third of
	// its buffer is free, which may be megabytes.
	Silence time.Duration
	Log     *slog.Logger         // nil: nothing is logged
	Done    func(*record.Record) // called when a request has been served; may be nil
	// OriginConns has the connections of the Upstream, so that one that the network redirects to the gate is refused; may be nil.
	OriginConns *OriginConns
	// Ready is called before every decision: an error refuses the request. May be nil.
	Ready func() error
}

// A Proxy serves clients until Shutdown.
type Proxy struct {
	Options
	settings   atomic.Pointer[Settings]
	forwarder  http.Handler     // goproxy: it calls permit and send of an exchange
	outer      *http.Server     // serves the connections of clients
	inner      *http.Server     // serves their tunnels
	tunnels    *client.Tunnels  // from CONNECT, and redirected connections, to inner
	begin      sync.Once        // of inner
	tls        *tls.Config      // towards clients
	open       client.OpenConns // hijacked connections in use, for Shutdown
	silent     client.OpenConns // tunnels in which the client has sent nothing yet
	conns      client.ConnLimits
	redirected *client.ConnCounter
	socks      *client.ConnCounter
	ending     context.Context // ends when Shutdown is called
	end        context.CancelFunc
	address    atomic.Value // a string: where Serve listens
	hints      client.TrustHints
	requests   atomic.Int64 // in progress
	clients    clients
}

// Use puts other settings in force. Requests in flight finish under their own, and no
// connection is closed. It returns an error, and changes nothing, if a required field is missing.
func (p *Proxy) Use(s Settings) error {
	switch {
	case s.Engine == nil:
		return errors.New("proxy: Settings.Engine is nil: there is nothing to decide with")
	case s.Upstream == nil:
		return errors.New("proxy: Settings.Upstream is nil: there is nothing to reach origins with")
	}
	if s.Passthrough == nil {
		s.Passthrough = func(string) bool { return false }
	}
	s.MaxConnections, s.MaxRequests = cmp.Or(s.MaxConnections, DefaultMaxConnections), cmp.Or(s.MaxRequests, DefaultMaxRequests)
	s.Tags.MaxHeadBytes = cmp.Or(s.Tags.MaxHeadBytes, DefaultTags().MaxHeadBytes)
	s.Tags.HeadTimeout = cmp.Or(s.Tags.HeadTimeout, DefaultTags().HeadTimeout)
	s.wrapped = s.Engine.Crawlers().Wrapped(s.Upstream)
	p.settings.Store(&s)
	return nil
}

// withDefaults returns the options with a value for everything that may be left out.
func (o Options) withDefaults() (Options, error) {
	if o.Leaf == nil {
		return o, errors.New("proxy: Options.Leaf is nil: HTTPS requests cannot be decided without certificates")
	}
	if o.Done == nil {
		o.Done = func(*record.Record) {}
	}
	if o.CA == nil {
		o.CA = func() []byte { return nil }
	}
	if o.Bundle == nil {
		o.Bundle = func() []byte { return nil }
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	o.OriginConns = cmp.Or(o.OriginConns, &OriginConns{})
	o.Silence = cmp.Or(o.Silence, 15*time.Minute)
	limits := DefaultLimits()
	o.Limits.MaxHeaderBytes = cmp.Or(o.Limits.MaxHeaderBytes, limits.MaxHeaderBytes)
	o.Limits.HeaderTimeout = cmp.Or(o.Limits.HeaderTimeout, limits.HeaderTimeout)
	o.Limits.IdleTimeout = cmp.Or(o.Limits.IdleTimeout, limits.IdleTimeout)
	return o, nil
}

// listener returns a listener that accepts clients within the limits.
func (p *Proxy) listener(l net.Listener) *client.Listener {
	return &client.Listener{
		Listener: l, Limits: &p.conns, Silence: p.Silence, Hints: &p.hints, Log: p.Log,
	}
}

// serveTunnels makes the inner server serve, until Shutdown.
func (p *Proxy) serveTunnels() {
	p.begin.Do(func() { go p.inner.Serve(p.tunnels) })
}

// Connections are counts of client connections.
type Connections struct {
	Open    int
	Tunnels int // how many of the open ones are CONNECT tunnels
	// Rejected counts the connections beyond a limit, by the name of the limit.
	Rejected map[string]int64
}

// Connections counts the connections of clients.
func (p *Proxy) Connections() (c Connections) {
	c.Open, c.Tunnels, c.Rejected = p.conns.Counts()
	return c
}
