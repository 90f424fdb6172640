package proxy

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/textproto"
	"net/url"
	"sync/atomic"
	"time"

	"robotsgate/policy"
	"robotsgate/policy/glob"
)

// Egress says what the gate may connect to, and how: the section of that name
// in the configuration.
type Egress struct {
	AllowPrivate          []netip.Prefix
	DenyHosts             []glob.Glob
	Ports                 []uint16 // empty: all
	Parent                *url.URL // a proxy to go through: http, https or socks5; nil: none
	Roots                 *x509.CertPool
	DialTimeout           time.Duration
	ResponseHeaderTimeout time.Duration
	IdleTimeout           time.Duration
	MaxConnsPerHost       int
	Own                   func() []netip.AddrPort // where the gate listens; nil: nowhere
	Descriptors           *Descriptors            // shared by all that open connections; nil: no bound
}

// Bounds on HTTP/2, in bytes but for maxStreams.
const (
	largeWindow  = 512 << 10 // of a response that is not read, if memory allows
	smallWindow  = 16 << 10  // else
	onlyWindow   = 64 << 10  // where egress.max_conns_per_host leaves no choice
	uploadWindow = 256 << 10 // of what a client's connection sends and is not read
	maxFrame     = 16 << 10  // which each connection keeps a buffer for
	maxStreams   = 100       // requests in progress on a client's connection
)

// maxResponseHeader bounds the head of an origin's response, in bytes.
const maxResponseHeader = 1 << 20

// An Upstream is the one way out: requests, robots.txt fetches and tunnels all
// leave through it, and past its guard.
type Upstream struct {
	guard     *guard
	transport *http.Transport // with largeWindow
	small     *http.Transport // with smallWindow
	carrier   *carrier        // of most requests; nil: all are transport's
	direct    net.Dialer      // guarded, unless there is a parent
	parent    *url.URL
	tls       *tls.Config
	names     nameCache
	patience  time.Duration // until an answer, attempts and all

	descriptors *Descriptors
}

// NewUpstream returns the way out. It takes no proxy from the environment.
func NewUpstream(e Egress) *Upstream {
	u := &Upstream{
		guard:  newGuard(e),
		direct: net.Dialer{Timeout: e.DialTimeout, KeepAlive: 30 * time.Second},
		parent: e.Parent,
		tls:    &tls.Config{RootCAs: e.Roots, MinVersion: tls.VersionTLS12},
		// To connect, to shake hands, and to answer.
		patience: 2*e.DialTimeout + e.ResponseHeaderTimeout,

		descriptors: cmp.Or(e.Descriptors, &Descriptors{}),
	}
	idle := u.descriptors.idle()
	if e.Parent == nil {
		// With a parent the only address dialled is the parent's.
		u.direct.ControlContext = u.guard.control
	}
	if e.Parent == nil && e.MaxConnsPerHost == 0 {
		u.carrier = &carrier{
			keptConns: keptConns{idle: e.IdleTimeout, max: idle}, connect: u.connect,
			answer: e.ResponseHeaderTimeout, total: u.patience,
		}
	}
	if e.MaxConnsPerHost > 0 { // two transports would open twice as many
		u.transport = u.newTransport(e, onlyWindow, idle)
		u.small = u.transport
	} else {
		u.transport = u.newTransport(e, largeWindow, idle)
		u.small = u.newTransport(e, smallWindow, max(1, idle/16))
	}
	u.descriptors.add(u)
	return u
}

// newTransport returns a transport that keeps so many connections, and lets an origin send so many bytes of a
// response over HTTP/2 ahead of a client that does not read.
func (u *Upstream) newTransport(e Egress, window, idle int) *http.Transport {
	t := &http.Transport{
		DialContext:            u.dial,
		TLSClientConfig:        u.tls.Clone(), // which Transport changes
		TLSHandshakeTimeout:    e.DialTimeout,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true, // bodies pass as the client asked for them
		MaxIdleConns:           idle,
		MaxIdleConnsPerHost:    min(idle, maxKeptOrigin),
		MaxConnsPerHost:        e.MaxConnsPerHost,
		IdleConnTimeout:        e.IdleTimeout,
		ResponseHeaderTimeout:  e.ResponseHeaderTimeout,
		ExpectContinueTimeout:  time.Second,
		MaxResponseHeaderBytes: maxResponseHeader,
		HTTP2:                  &http.HTTP2Config{MaxReceiveBufferPerStream: window, MaxReadFrameSize: maxFrame},
	}
	if e.Parent != nil {
		t.Proxy = http.ProxyURL(e.Parent)
		t.ProxyConnectHeader = http.Header{"User-Agent": {""}} // else net/http adds its own
		t.OnProxyConnectResponse = func(_ context.Context, _ *url.URL, _ *http.Request, answer *http.Response) error {
			return connectRefused(answer) // before Transport makes an error of the reason phrase
		}
	}
	if u.carrier != nil {
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
// forbid is an error that is policy.ErrProhibited.
func (u *Upstream) RoundTrip(req *http.Request) (*http.Response, error) {
	return u.send(req, nil, func(req *http.Request) (*http.Response, error) {
		if req.URL.Scheme == "http" {
			return u.viaTransport(u.transport, req)
		}
		ctx, cancel := context.WithCancelCause(req.Context()) // ends with the request's
		trace := &httptrace.ClientTrace{}
		boundAttempts(trace, cancel)
		resp, err := u.viaTransport(u.transport, req.WithContext(httptrace.WithClientTrace(ctx, trace)))
		if err != nil && context.Cause(ctx) == errAttempts {
			err = errAttempts
		}
		return resp, err
	})
}

// send sends a request to its origin, past the guard: by the carrier if that can be, which
// tells informed of 1xx responses, else by what is given for it.
func (u *Upstream) send(req *http.Request, informed func(int, textproto.MIMEHeader) error, otherwise func(*http.Request) (*http.Response, error)) (resp *http.Response, err error) {
	defer func() { err = u.descriptors.mark(err) }()
	port := req.URL.Port()
	if port == "" {
		port = defaultPorts[req.URL.Scheme]
	}
	if err := u.Check(req.URL.Hostname(), port); err != nil {
		return nil, err
	}
	if u.carrier == nil || !u.carrier.carries(req) {
		return otherwise(req)
	}
	resp, err = u.carrier.roundTrip(req.Context(), req, informed)
	if other, ok := err.(*speaksHTTP2); ok {
		defer other.closeUnused()
		return otherwise(other.handOver(req))
	}
	return resp, err
}

var defaultPorts = map[string]string{"http": "80", "https": "443", "socks5": "1080"}

// viaTransport sends a request by Transport. In clear, through a parent of the schemes
// http and https, it is the parent that answers: its 407 is not the origin's (RFC 9110,
// 15.5.8), and must not be taken for an origin without a robots.txt.
func (u *Upstream) viaTransport(t *http.Transport, req *http.Request) (*http.Response, error) {
	resp, err := t.RoundTrip(onlyHTTP1(req))
	if err != nil && u.parent != nil {
		err = parentError(err)
	}
	if err != nil || req.URL.Scheme != "http" || u.parent == nil || u.parent.Scheme == "socks5" {
		return resp, err
	}
	if err := wantsLogin(resp); err != nil {
		resp.Body.Close()
		return nil, err
	}
	return resp, nil
}

// maxAttempts bounds the new connections on which Transport tries one request. An origin
// over HTTP/2 can refuse each, and would be asked again at once, for ever.
const maxAttempts = 8

var errAttempts = errors.New("the origin refuses every connection again")

// boundAttempts cancels a request when there have been too many.
func boundAttempts(trace *httptrace.ClientTrace, cancel context.CancelCauseFunc) {
	var attempts atomic.Int64
	trace.GotConn = func(info httptrace.GotConnInfo) {
		if !info.Reused { // kept ones may all be gone by now; there are only so many
			attempts.Add(1)
		}
	}
	// Before the next is dialled: one that is given up by then has been dialled all the same.
	trace.GetConn = func(string) {
		if attempts.Load() >= maxAttempts {
			cancel(errAttempts)
		}
	}
}

// Check judges a destination as far as it is known before it is dialled.
func (u *Upstream) Check(host, port string) error {
	if err := u.guard.name(host, port); err != nil || u.parent == nil {
		return err
	}
	return u.names.get(net.JoinHostPort(host, port), func() error {
		return u.descriptors.look(func() error { return u.guard.resolved(host, port) })
	})
}

// Close closes idle connections, and those of most requests that are under way once they
// are answered.
func (u *Upstream) Close() {
	u.descriptors.remove(u)
	u.transport.CloseIdleConnections()
	u.small.CloseIdleConnections()
	if u.carrier != nil {
		u.carrier.end()
	}
}

// Dial opens a tunnel to host and port, past the guard or through the parent.
func (u *Upstream) Dial(ctx context.Context, host, port string) (net.Conn, error) {
	if err := u.Check(host, port); err != nil {
		return nil, err
	}
	address := net.JoinHostPort(host, port)
	if u.parent == nil {
		return u.dial(ctx, "tcp", address)
	}
	if u.parent.Scheme == "socks5" {
		return u.dialSocks(ctx, address)
	}
	return u.dialConnect(ctx, address)
}

// dial opens a connection to an origin, or to the parent if there is one.
func (u *Upstream) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := u.descriptors.dial(func() (net.Conn, error) { return u.direct.DialContext(ctx, network, address) })
	if err != nil && u.parent != nil && ctx.Err() == nil && !errors.Is(err, policy.ErrExhausted) {
		return nil, fmt.Errorf("%w: %w", policy.ErrParent, err)
	}
	return conn, err
}
