package origin

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"robotsgate/policy"
	"robotsgate/policy/glob"
)

// A Config says what a Transport may connect to, and how: see proxy.Egress.
type Config struct {
	AllowPrivate          []netip.Prefix
	DenyHosts             []glob.Glob
	Ports                 []uint16 // empty: all
	Parent                *url.URL // a proxy to go through: http, https or socks5; nil: none
	Roots                 *x509.CertPool
	DialTimeout           time.Duration
	ResponseHeaderTimeout time.Duration
	IdleTimeout           time.Duration
	MaxConnsPerHost       int
	OnlyNetHTTP           bool                    // send all requests by net/http's Transport
	Own                   func() []netip.AddrPort // where the gate listens; nil: nowhere
	Names                 struct{ AllowPrivate, DenyHosts, Ports, Parent string }
}

// Bounds on HTTP/2, in bytes.
const (
	largeWindow = 512 << 10 // of a response that is not read, if memory allows
	smallWindow = 16 << 10  // else
	onlyWindow  = 64 << 10  // where egress.max_conns_per_host leaves no choice
	maxFrame    = 16 << 10  // which each connection keeps a buffer for
)

// maxResponseHeader bounds the head of an origin's response, in bytes.
const maxResponseHeader = 1 << 20

// A Transport is the one way out: requests, robots.txt fetches and tunnels all
// leave through it, and past its guard.
type Transport struct {
	guard     *guard
	transport http.RoundTripper // http1Client or netHTTP
	netHTTP   *netHTTP
	http1     *http1Client // nil: it is not used
	Dialer    net.Dialer   // guarded, unless there is a parent
	parent    *url.URL
	login     string // the name of the setting with the parent's login
	tls       *tls.Config
	names     nameCache

	descriptors *Descriptors
}

// New returns the way out. It takes no proxy from the environment. The descriptors are those for all
// ways out together.
func New(e Config, d *Descriptors) *Transport {
	u := &Transport{
		guard:       newGuard(e),
		Dialer:      net.Dialer{Timeout: e.DialTimeout, KeepAlive: 30 * time.Second},
		parent:      e.Parent,
		login:       cmp.Or(e.Names.Parent, "its URL"),
		tls:         &tls.Config{RootCAs: e.Roots, MinVersion: tls.VersionTLS12},
		descriptors: d,
	}
	idle := u.descriptors.idle()
	if e.Parent == nil {
		// With a parent the only address dialled is the parent's.
		u.Dialer.ControlContext = u.guard.control
	}
	patience := 2*e.DialTimeout + e.ResponseHeaderTimeout // to connect, to shake hands, and to answer
	u.netHTTP = &netHTTP{patience: patience}
	if tunnels(e.Parent) {
		u.netHTTP.answeredByParent = u.wantsLogin
	}
	u.transport = u.netHTTP
	if !tunnels(e.Parent) && e.MaxConnsPerHost == 0 && !e.OnlyNetHTTP {
		u.http1 = &http1Client{
			idleConns: idleConns{idle: e.IdleTimeout, max: idle}, connect: u.connect, next: u.netHTTP,
			answer: e.ResponseHeaderTimeout, total: patience,
		}
		u.transport = u.http1
	}
	if e.MaxConnsPerHost > 0 { // two transports would open twice as many
		u.netHTTP.large = u.newTransport(e, onlyWindow, idle)
		u.netHTTP.small = u.netHTTP.large
	} else {
		u.netHTTP.large = u.newTransport(e, largeWindow, idle)
		u.netHTTP.small = u.newTransport(e, smallWindow, max(1, idle/16))
	}
	u.descriptors.add(u)
	return u
}

// newTransport returns a transport that keeps so many connections, and lets an origin send so many bytes of a
// response over HTTP/2 ahead of a client that does not read.
func (u *Transport) newTransport(e Config, window, idle int) *http.Transport {
	t := &http.Transport{
		DialContext:            func(ctx context.Context, _, address string) (net.Conn, error) { return u.dialOrigin(ctx, address) },
		TLSClientConfig:        u.tls.Clone(), // which Transport changes
		TLSHandshakeTimeout:    e.DialTimeout,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true, // bodies pass as the client asked for them
		MaxIdleConns:           idle,
		MaxIdleConnsPerHost:    min(idle, maxIdleOrigin),
		MaxConnsPerHost:        e.MaxConnsPerHost,
		IdleConnTimeout:        e.IdleTimeout,
		ResponseHeaderTimeout:  e.ResponseHeaderTimeout,
		ExpectContinueTimeout:  time.Second,
		MaxResponseHeaderBytes: maxResponseHeader,
		HTTP2:                  &http.HTTP2Config{MaxReceiveBufferPerStream: window, MaxReadFrameSize: maxFrame},
	}
	if tunnels(e.Parent) { // which Transport asks for itself
		t.DialContext = u.dial
		t.Proxy = http.ProxyURL(e.Parent)
		t.ProxyConnectHeader = http.Header{"User-Agent": {""}} // else net/http adds its own
		t.OnProxyConnectResponse = func(_ context.Context, _ *url.URL, _ *http.Request, answer *http.Response) error {
			return u.connectRefused(answer) // before Transport makes an error of the reason phrase
		}
	}
	if u.http1 != nil {
		t.DialTLSContext = func(ctx context.Context, _, address string) (net.Conn, error) {
			if conn := handedOver(ctx); conn != nil {
				return conn, nil
			}
			return u.dialTLS(ctx, address, protocols(ctx))
		}
	}
	return t
}

// RoundTrip sends a request to its origin. A destination that the egress rules
// forbid is an error that is policy.ErrProhibited. What it needs of memory it takes from
// the [memory.Reservation] in the request's context, and it passes on 1xx responses as
// [httptrace.ClientTrace] says.
func (u *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	port := req.URL.Port()
	if port == "" {
		port = defaultPorts[req.URL.Scheme]
	}
	err := u.Check(req.URL.Hostname(), port)
	if err != nil {
		return nil, u.descriptors.mark(err)
	}
	resp, err := u.transport.RoundTrip(req)
	if err != nil && u.parent != nil {
		err = parentError(err)
	}
	return resp, u.descriptors.mark(err)
}

var defaultPorts = map[string]string{"http": "80", "https": "443", "socks5": "1080"}

// Check judges a destination as far as it is known before it is dialled.
func (u *Transport) Check(host, port string) error {
	if err := u.guard.name(host, port); err != nil || u.parent == nil {
		return err
	}
	return u.names.get(net.JoinHostPort(host, port), func() error {
		return u.descriptors.look(func() error { return u.guard.resolved(host, port) })
	})
}

// Close closes idle connections, and those of most requests that are under way once they
// are answered.
func (u *Transport) Close() {
	u.descriptors.remove(u)
	u.CloseIdleConnections()
	if u.http1 != nil {
		u.http1.end()
	}
}

// CloseIdleConnections closes idle connections.
func (u *Transport) CloseIdleConnections() {
	if u.http1 != nil {
		u.http1.closeOldest(maxIdle)
	}
	u.netHTTP.CloseIdleConnections()
}

// Dial opens a tunnel to host and port, past the guard or through the parent.
func (u *Transport) Dial(ctx context.Context, host, port string) (net.Conn, error) {
	if err := u.Check(host, port); err != nil {
		return nil, err
	}
	return u.dialOrigin(ctx, net.JoinHostPort(host, port))
}

// dialOrigin opens a connection to an origin, through the parent if there is one.
func (u *Transport) dialOrigin(ctx context.Context, address string) (net.Conn, error) {
	switch {
	case u.parent == nil:
		return u.dial(ctx, "tcp", address)
	case u.parent.Scheme == "socks5":
		return u.dialSocks(ctx, address)
	default:
		return u.dialConnect(ctx, address)
	}
}

// dial opens a connection to an origin, or to the parent if there is one.
func (u *Transport) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := u.descriptors.dial(func() (net.Conn, error) { return u.Dialer.DialContext(ctx, network, address) })
	if err != nil && u.parent != nil && ctx.Err() == nil && !errors.Is(err, policy.ErrExhausted) {
		return nil, fmt.Errorf("%w: %w", policy.ErrParent, err)
	}
	return conn, err
}
