package proxy

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"robotsgate/internal/field"
	"robotsgate/policy/glob"
	"robotsgate/proxy/internal/origin"
)

// An Upstream reaches origins: requests, robots.txt fetches and tunnels all leave through it.
// [NewTransport] returns one. To change what is sent, wrap that one, and give the result to
// [Settings] and to the policy engine. [Signing] wraps it for the requests of one crawler. The RoundTrip of a wrapper changes a clone of the request, with the same
// context. It must leave the Body of a 101 response an [io.ReadWriteCloser].
type Upstream interface {
	// RoundTrip sends a request to its origin. Package policy/snapshot names the errors that matter for a
	// decision, such as [snapshot.ErrProhibited]. 1xx responses are passed to the
	// [net/http/httptrace.ClientTrace] in the request's context. Its GotConn is called before each
	// attempt to send the request, which is sent with the header as GotConn leaves it.
	http.RoundTripper
	// Check returns an error that is [snapshot.ErrProhibited] if a destination is forbidden,
	// as far as that is known without a lookup of its name. It is called before the decision.
	Check(host, port string) error
	// CheckLists is Check by the lists of hosts and ports alone.
	CheckLists(host, port string) error
	// Dial opens a passthrough tunnel, under the same rules as RoundTrip. The requests in it cannot be
	// seen, so they cannot be signed.
	Dial(ctx context.Context, host, port string) (net.Conn, error)
}

// Egress says what a Transport may connect to, and how. Special-purpose addresses (RFC 6890), such as those
// of loopback and of private networks, are forbidden unless AllowPrivate permits them.
type Egress struct {
	AllowPrivate          []netip.Prefix `yaml:"allow_private" doc:"an address range, such as 10.0.0.0/8"`               // special-purpose addresses that are permitted
	DenyHosts             []glob.Glob    `yaml:"deny_hosts" glob:"host" doc:"a host, such as \"*.example.com\""`         // hosts that are forbidden, by their name or address
	Ports                 []int          `yaml:"ports" doc:"a port, such as 443"`                                        // that may be connected to; empty: all
	Parent                *url.URL       `yaml:"proxy" doc:"a proxy's URL, such as http://proxy.lan:3128" secret:"true"` // a proxy to go through: http, https or socks5; nil: none
	CAFile                string         `yaml:"ca_file" doc:"a PEM file, such as /etc/ssl/company-ca.pem" path:"yes"`   // further roots, which the caller reads into Roots; "": none
	DialTimeout           time.Duration  `yaml:"dial_timeout" positive:"yes"`                                            // 0: that of [DefaultEgress], as for the next two
	ResponseHeaderTimeout time.Duration  `yaml:"response_header_timeout" positive:"yes"`
	IdleTimeout           time.Duration  `yaml:"idle_timeout" positive:"yes"`                                        // of a connection that is kept for further requests
	MaxConnsPerHost       int            `yaml:"max_conns_per_host" doc:"a whole number, such as 8" zero:"no limit"` // 0: no limit

	Roots       *x509.CertPool          // for the certificates of origins; nil: the system's
	OnlyNetHTTP bool                    // send every request by net/http's Transport, which is slower
	Own         func() []netip.AddrPort // where the gate listens, which is forbidden; nil: nowhere

	// HowToPermit returns what a refusal advises if AllowPrivate does not permit an address; nil: nothing.
	HowToPermit func(netip.Addr) string
}

// DefaultEgress permits all destinations but special-purpose addresses.
func DefaultEgress() Egress {
	return Egress{DialTimeout: origin.DialTimeout, ResponseHeaderTimeout: origin.ResponseHeaderTimeout, IdleTimeout: origin.IdleTimeout}
}

// Check reports values that make no sense, and a CAFile without certificates.
func (e Egress) Check(m *field.Mistakes) {
	for i, port := range e.Ports {
		m.Require(port >= 1 && port <= 65535, fmt.Sprintf("ports[%d]", i), "%d is no port: 1 to 65535", port)
	}
	if e.CAFile == "" {
		return
	}
	pem, err := field.ReadFile(e.CAFile)
	if err == nil && !x509.NewCertPool().AppendCertsFromPEM(pem) {
		err = errors.New("no certificate in it: a PEM file with -----BEGIN CERTIFICATE----- is needed")
	}
	m.Require(err == nil, "ca_file", "%s: %v", e.CAFile, err)
}

// ParentHasLogin reports whether a parent proxy gets a login with each request, which it may repeat in redirects.
func (e Egress) ParentHasLogin() bool {
	return e.Parent != nil && e.Parent.User != nil && e.Parent.Scheme != "socks5"
}

// A Transport is the Upstream that connects to origins, directly or through a parent proxy.
type Transport struct{ origins *origin.Transport }

// NewTransport returns a Transport. It takes no proxy from the environment. All Transports with the same d share its
// bound; nil: there is no bound. The error is about the parent's scheme.
func NewTransport(e Egress, d *Descriptors) (*Transport, error) {
	if d == nil {
		d = &Descriptors{}
	}
	t, err := origin.New(origin.Config(e), &d.d)
	if err != nil {
		return nil, err
	}
	return &Transport{t}, nil
}

// RoundTrip sends a request, as [Upstream] says.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) { return t.origins.RoundTrip(r) }

// Check checks a destination, as [Upstream] says.
func (t *Transport) Check(host, port string) error { return t.origins.Check(host, port) }

// CheckLists checks a destination, as [Upstream] says.
func (t *Transport) CheckLists(host, port string) error { return t.origins.CheckLists(host, port) }

// Dial opens a tunnel, as [Upstream] says.
func (t *Transport) Dial(ctx context.Context, host, port string) (net.Conn, error) {
	return t.origins.Dial(ctx, host, port)
}

// Close closes idle connections, and most connections in use as soon as their response has been read.
func (t *Transport) Close() { t.origins.Close() }

// Descriptors divides the file descriptors that the process may open: half are for
// connections of clients, an eighth is left for files, DNS lookups and the admin listener,
// and the rest is for connections to origins. The zero value sets no bound.
type Descriptors struct{ d origin.Descriptors }

// NewDescriptors divides limit descriptors, which is RLIMIT_NOFILE; 0: no limit is known. Shortages are logged.
func NewDescriptors(limit int, log *slog.Logger) *Descriptors {
	return &Descriptors{origin.Descriptors{Limit: limit, Log: log}}
}

// Clients returns how many connections of clients there may be, out of as many as configured.
func (d *Descriptors) Clients(configured int) int { return d.d.Clients(configured) }

// Other returns how many descriptors are left for one of the other uses, out of as many as it wants.
func (d *Descriptors) Other(wanted int) int { return d.d.Other(wanted) }

// Failures returns how often a connection could not be opened or accepted because there was no
// descriptor, a local port, or memory.
func (d *Descriptors) Failures() int64 { return d.d.Failures() }

// Listener returns l with an Accept that closes idle connections to origins when descriptors
// run out, tries again, and then returns a temporary error. After such an error net/http waits for up to
// a second; after any other it would stop serving.
func (d *Descriptors) Listener(l net.Listener) net.Listener { return d.d.Listener(l) }
