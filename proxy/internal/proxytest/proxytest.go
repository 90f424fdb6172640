// Package proxytest starts a gate in the process of a test, with its own origins. Package proxy's tests and those of the
// packages below it use it for requests through a whole proxy.
package proxytest

import (
	"cmp"
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"robotsgate/internal/ca"
	"robotsgate/internal/record"
	"robotsgate/internal/store/storetest"
	"robotsgate/policy"
	"robotsgate/policy/cache"
	"robotsgate/policy/snapshot"
	"robotsgate/proxy"
)

// A Gate is a proxy between clients and two origins, one in clear and one in TLS, which serve the same. It keeps the
// requests that the origins receive, and the records.
type Gate struct {
	T           *testing.T
	Proxy       *proxy.Proxy
	Addr        string         // of the gate
	HTTP, HTTPS string         // the origins
	Roots       *x509.CertPool // with the gate's CA
	Transport   *proxy.Transport
	OriginRoots *x509.CertPool // of the origin in TLS, which only passed-through clients see
	Done        chan *record.Record

	mu        sync.Mutex
	seen      []*http.Request
	exchanges []*record.Record
	robots    string
}

// Options say how a gate and its origins differ from the usual ones. The functions change the settings of the parts of
// the gate before it starts.
type Options struct {
	Proxy       func(*proxy.Options)
	Engine      func(*policy.Config)
	Egress      func(*proxy.Egress)
	Upstream    func(proxy.Upstream) proxy.Upstream // wraps the transport
	OriginConns *proxy.OriginConns                  // the connections to origins; may be nil
	Handler     http.HandlerFunc                    // of the origins; nil: they greet
	Robots      string                              // the robots.txt of the origins; "": ExampleRobots
	RobotsTxt   http.HandlerFunc                    // serves robots.txt in place of Robots; may be nil
	Forget      bool                                // no request is kept, which would take up memory
	Parent      *Parent                             // a proxy between the gate and the origins; may be nil
	Listen      string                              // the gate's address; "": a port of 127.0.0.1
}

// PublicRoots stands for the system's roots in the gate's bundle.
const PublicRoots = "the system's roots\n"

// ExampleRobots is the usual robots.txt.
const ExampleRobots = "User-agent: *\nDisallow: /private/\nAllow: /private/open\nCrawl-delay: 2.5\n"

// Start starts a gate and its origins until the test ends.
func Start(t *testing.T, o Options) *Gate {
	t.Helper()
	g := &Gate{T: t, Roots: x509.NewCertPool(), robots: o.Robots, Done: make(chan *record.Record, 100)}
	if g.robots == "" {
		g.robots = ExampleRobots
	}
	origin := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		if !o.Forget {
			g.seen = append(g.seen, r)
		}
		g.mu.Unlock()
		switch {
		case r.URL.Path == "/robots.txt" && o.RobotsTxt != nil:
			o.RobotsTxt(rw, r)
			return
		case r.URL.Path == "/robots.txt":
			io.WriteString(rw, g.robots)
			return
		}
		if o.Handler != nil {
			o.Handler(rw, r)
			return
		}
		fmt.Fprintf(rw, "hello from %s", r.RequestURI)
	})
	plain, secure := httptest.NewUnstartedServer(origin), httptest.NewUnstartedServer(origin)
	for _, s := range []*httptest.Server{plain, secure} {
		s.Config.ErrorLog = log.New(io.Discard, "", 0) // connections that break off are part of the tests
	}
	plain.Start()
	secure.EnableHTTP2 = true
	secure.StartTLS()
	t.Cleanup(plain.Close)
	t.Cleanup(secure.Close)
	g.HTTP, g.HTTPS = plain.URL, secure.URL

	g.OriginRoots = x509.NewCertPool()
	g.OriginRoots.AddCert(secure.Certificate())
	egress := proxy.Egress{
		AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Roots:        g.OriginRoots, DialTimeout: 5 * time.Second, ResponseHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute,
	}
	if o.Parent != nil {
		o.Parent.LeadTo(Host(plain.URL), Host(secure.URL))
		egress.Parent = o.Parent.URL
	}
	if o.Egress != nil {
		o.Egress(&egress)
	}
	var err error
	if g.Transport, err = proxy.NewTransport(egress, o.OriginConns); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Transport.Close)
	upstream := proxy.Upstream(g.Transport)
	if o.Upstream != nil {
		upstream = o.Upstream(upstream)
	}
	logger := slog.New(slog.NewTextHandler(t.Output(), nil))
	config := policy.Config{
		Crawlers: policy.Crawlers{Default: &policy.Crawler{Name: "default", Mode: policy.Enforce, DenyStatus: 403}},
		Robots: policy.Robots{Settings: snapshot.Settings{MaxAge: 24 * time.Hour, MinAge: 5 * time.Minute, StaleFor: 720 * time.Hour,
			AfterStale: "disallow", Timeout: 5 * time.Second, MaxBytes: 512 << 10, MaxRedirects: 5, CacheBytes: 1 << 20}},
		Transport: upstream,
		Store:     storetest.NewMap(),
		Log:       logger,
	}
	if o.Engine != nil {
		o.Engine(&config)
	}
	engine, err := policy.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(engine.Close)
	authority, err := ca.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	g.Roots.AddCert(authority.Certificate())
	opts := proxy.Options{
		Settings: proxy.Settings{
			Engine: engine, Upstream: upstream,
			Passthrough: func(string) bool { return false },
			Tags:        proxy.Tags{HTML: true, MaxHeadBytes: 512 << 10, HeadTimeout: 5 * time.Second},
			LoadLimits:  proxy.LoadLimits{MaxConnections: 1000},
		},
		Remembered: cache.NewTags(1 << 20), Leaf: authority.Leaf, CA: authority.PEM, Bundle: func() []byte { return authority.Bundle([]byte(PublicRoots)) },
		Limits: proxy.Limits{MaxHeaderBytes: 64 << 10, HeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute},
		Log:    logger,
		Done: func(x *record.Record) {
			g.mu.Lock()
			g.exchanges = append(g.exchanges, x)
			g.mu.Unlock()
			g.Done <- x
		},
	}
	if o.Proxy != nil {
		o.Proxy(&opts)
	}
	if g.Proxy, err = proxy.New(opts); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", cmp.Or(o.Listen, "127.0.0.1:0"))
	if err != nil {
		t.Fatal(err)
	}
	g.Addr = l.Addr().String()
	served := make(chan error, 1)
	go func() { served <- g.Proxy.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		g.Proxy.Shutdown(ctx)
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return g
}

// Next returns the record of the next exchange that ends.
func (g *Gate) Next(t *testing.T) *record.Record {
	t.Helper()
	return Receive(t, g.Done, "the record of an exchange")
}

// Arrived returns the lines of the requests that reached an origin, without those for robots.txt.
func (g *Gate) Arrived() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var out []string
	for _, r := range g.seen {
		if r.RequestURI != "/robots.txt" {
			out = append(out, r.Method+" "+r.RequestURI)
		}
	}
	return out
}

// Last returns the latest request that reached an origin.
func (g *Gate) Last() *http.Request {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.seen[len(g.seen)-1]
}

// Count returns how many requests reached an origin, those for robots.txt included.
func (g *Gate) Count() int { return len(g.Requests()) }

// Requests returns the requests that reached an origin, those for robots.txt included.
func (g *Gate) Requests() []*http.Request {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.seen)
}

// TakeRequests returns the requests that reached an origin since the last call.
func (g *Gate) TakeRequests() []*http.Request {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := g.seen
	g.seen = nil
	return all
}

// Records returns the records of all exchanges that have ended.
func (g *Gate) Records() []*record.Record {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.exchanges)
}
