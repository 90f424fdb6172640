package proxy

import (
	"cmp"
	"context"
	"crypto/x509"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"robotsgate/policy/glob"
	"robotsgate/proxy/internal/origin"
)

// An Upstream reaches origins. Requests, robots.txt fetches and tunnels all leave through it.
// To change what is sent, wrap one, and give the result to both the Proxy and the policy engine.
type Upstream interface {
	// RoundTrip sends a request to its origin. An error for which policy has a name, such as
	// [policy.ErrProhibited], is one of the kinds that package policy distinguishes. It passes 1xx
	// responses to the [net/http/httptrace.ClientTrace] of the request's context.
	http.RoundTripper
	// Check returns an error that is [policy.ErrProhibited] if a destination may not be connected
	// to, as far as that is known before its name is resolved.
	Check(host, port string) error
	// Dial opens a tunnel, under the same rules as RoundTrip.
	Dial(ctx context.Context, host, port string) (net.Conn, error)
}

// Egress says what a Transport may connect to, and how. Connections to special-purpose addresses
// (RFC 6890), such as those of private networks, are refused.
type Egress struct {
	AllowPrivate          []netip.Prefix // special-purpose addresses that are permitted
	DenyHosts             []glob.Glob
	Ports                 []uint16                // empty: all
	Parent                *url.URL                // a proxy to go through: http, https or socks5; nil: none
	Roots                 *x509.CertPool          // for the certificates of origins; nil: the system's
	DialTimeout           time.Duration           // 0: 10 s
	ResponseHeaderTimeout time.Duration           // 0: 60 s
	IdleTimeout           time.Duration           // of unused connections; 0: 90 s
	MaxConnsPerHost       int                     // 0: no limit
	OnlyNetHTTP           bool                    // send all requests by net/http's Transport
	Own                   func() []netip.AddrPort // where the gate listens, which is refused; nil: nowhere

	// Names are the caller's names of some of these settings, so that an error can say which to change.
	Names struct{ AllowPrivate, DenyHosts, Ports, Parent string }
}

// A Transport is the Upstream that connects to origins, or to a parent proxy.
type Transport struct{ t *origin.Transport }

// NewTransport returns a Transport. Descriptors bounds the connections of all Transports that share it;
// nil: there is no bound.
func NewTransport(e Egress, d *Descriptors) *Transport {
	if d == nil {
		d = &Descriptors{}
	}
	e.DialTimeout = cmp.Or(e.DialTimeout, 10*time.Second)
	e.ResponseHeaderTimeout = cmp.Or(e.ResponseHeaderTimeout, time.Minute)
	e.IdleTimeout = cmp.Or(e.IdleTimeout, 90*time.Second)
	return &Transport{origin.New(origin.Config(e), &d.d)}
}

func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) { return t.t.RoundTrip(r) }
func (t *Transport) Check(host, port string) error                     { return t.t.Check(host, port) }
func (t *Transport) Dial(ctx context.Context, host, port string) (net.Conn, error) {
	return t.t.Dial(ctx, host, port)
}

// Close closes idle connections, and connections in use when their response has been read.
func (t *Transport) Close() { t.t.Close() }

// Descriptors divides the file descriptors that the process may open: half are for
// connections of clients, an eighth is left for files, DNS lookups and the admin listener,
// and the rest is for connections to origins. The zero value sets no bound.
type Descriptors struct{ d origin.Descriptors }

// NewDescriptors returns the division of a limit, RLIMIT_NOFILE; 0: no limit is known.
func NewDescriptors(limit int, log *slog.Logger) *Descriptors {
	return &Descriptors{origin.Descriptors{Limit: limit, Log: log}}
}

// Clients returns how many connections of clients there may be, out of as many as configured.
func (d *Descriptors) Clients(configured int) int { return d.d.Clients(configured) }

// Other returns how many descriptors are left for one of the other uses, out of as many as it wants.
func (d *Descriptors) Other(wanted int) int { return d.d.Other(wanted) }

// Failures returns how often a connection could not be opened or accepted for want of a
// descriptor, a local port, or memory.
func (d *Descriptors) Failures() int64 { return d.d.Failures() }

// Listener returns l with an Accept that closes idle connections to origins when descriptors
// run out, tries again, and then returns a temporary error: net/http waits after those, up to
// a second, and would end after others.
func (d *Descriptors) Listener(l net.Listener) net.Listener { return d.d.Listener(l) }
