package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/textproto"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	socks "golang.org/x/net/proxy"

	"robotsgate/internal/glob"
	"robotsgate/policy"
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
}

// streamBuffer bounds what is held of one body over HTTP/2, in bytes, in either
// direction; maxStreams bounds how many a client may have open on a connection.
const (
	streamBuffer = 512 << 10
	maxStreams   = 100
)

// maxResponseHeader bounds the head of an origin's response, in bytes.
const maxResponseHeader = 1 << 20

// An Upstream is the one way out: requests, robots.txt fetches and tunnels all
// leave through it, and past its guard.
type Upstream struct {
	guard     *guard
	transport *http.Transport
	carrier   *carrier   // of most requests; nil: all are transport's
	direct    net.Dialer // guarded, unless there is a parent
	parent    *url.URL
	tls       *tls.Config
	names     nameCache
	patience  time.Duration // until an answer, attempts and all
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
	}
	if e.Parent == nil {
		// With a parent the only address dialled is the parent's.
		u.direct.ControlContext = u.guard.control
	}
	u.transport = &http.Transport{
		DialContext:            u.dial,
		TLSClientConfig:        u.tls,
		TLSHandshakeTimeout:    e.DialTimeout,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true, // bodies pass as the client asked for them
		MaxIdleConns:           4096,
		MaxIdleConnsPerHost:    256,
		MaxConnsPerHost:        e.MaxConnsPerHost,
		IdleConnTimeout:        e.IdleTimeout,
		ResponseHeaderTimeout:  e.ResponseHeaderTimeout,
		ExpectContinueTimeout:  time.Second,
		MaxResponseHeaderBytes: maxResponseHeader,
		// What an origin may send ahead of a client that doesn't read: net/http
		// would hold 4 MiB for each of them.
		HTTP2: &http.HTTP2Config{MaxReceiveBufferPerStream: streamBuffer},
	}
	if e.Parent != nil {
		u.transport.Proxy = http.ProxyURL(e.Parent)
		u.transport.ProxyConnectHeader = http.Header{"User-Agent": {""}} // else net/http adds its own
		u.transport.OnProxyConnectResponse = func(_ context.Context, _ *url.URL, _ *http.Request, answer *http.Response) error {
			return wantsLogin(answer)
		}
	}
	if e.Parent == nil && e.MaxConnsPerHost == 0 {
		u.carrier = &carrier{
			keptConns: keptConns{idle: e.IdleTimeout}, connect: u.connect,
			answer: e.ResponseHeaderTimeout, total: u.patience,
		}
		u.transport.DialTLSContext = func(ctx context.Context, _, address string) (net.Conn, error) {
			if conn := handedOver(ctx); conn != nil {
				return conn, nil
			}
			return u.dialTLS(ctx, address, protocols(ctx))
		}
	}
	return u
}

// RoundTrip sends a request to its origin. A destination that the egress rules
// forbid is an error that is policy.ErrProhibited.
func (u *Upstream) RoundTrip(req *http.Request) (*http.Response, error) {
	return u.send(req, nil, func(req *http.Request) (*http.Response, error) {
		if req.URL.Scheme == "http" {
			return u.viaTransport(req)
		}
		ctx, cancel := context.WithCancelCause(req.Context()) // ends with the request's
		trace := &httptrace.ClientTrace{}
		boundAttempts(trace, cancel)
		resp, err := u.viaTransport(req.WithContext(httptrace.WithClientTrace(ctx, trace)))
		if err != nil && context.Cause(ctx) == errAttempts {
			err = errAttempts
		}
		return resp, err
	})
}

// send sends a request to its origin, past the guard: by the carrier if that can be, which
// tells informed of 1xx responses, else by what is given for it.
func (u *Upstream) send(req *http.Request, informed func(int, textproto.MIMEHeader) error, otherwise func(*http.Request) (*http.Response, error)) (*http.Response, error) {
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
	resp, err := u.carrier.roundTrip(req.Context(), req, informed)
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
func (u *Upstream) viaTransport(req *http.Request) (*http.Response, error) {
	resp, err := u.transport.RoundTrip(onlyHTTP1(req))
	if err != nil || req.URL.Scheme != "http" || u.parent == nil || u.parent.Scheme == "socks5" {
		return resp, err
	}
	if err := wantsLogin(resp); err != nil {
		resp.Body.Close()
		return nil, err
	}
	return resp, nil
}

// wantsLogin returns an error if a parent's answer is that it knows no such login.
func wantsLogin(answer *http.Response) error {
	if answer.StatusCode != http.StatusProxyAuthRequired {
		return nil
	}
	return fmt.Errorf("%w: %w", policy.ErrParent, fmt.Errorf("it answered %s: the login in egress.proxy is missing or wrong", answer.Status))
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
	return u.names.get(net.JoinHostPort(host, port), func() error { return u.guard.resolved(host, port) })
}

// Close drops idle connections.
func (u *Upstream) Close() {
	u.transport.CloseIdleConnections()
	if u.carrier != nil {
		u.carrier.closeIdle()
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
	conn, err := u.direct.DialContext(ctx, network, address)
	if err != nil && u.parent != nil && ctx.Err() == nil {
		return nil, fmt.Errorf("%w: %w", policy.ErrParent, err)
	}
	return conn, err
}

// A dialer is what package socks wants of one.
type dialer func(ctx context.Context, network, address string) (net.Conn, error)

func (d dialer) Dial(network, address string) (net.Conn, error) {
	return d(context.Background(), network, address)
}

func (d dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return d(ctx, network, address)
}

func (u *Upstream) dialSocks(ctx context.Context, address string) (net.Conn, error) {
	var auth *socks.Auth
	if p := u.parent.User; p != nil {
		password, _ := p.Password()
		auth = &socks.Auth{User: p.Username(), Password: password}
	}
	d, err := socks.SOCKS5("tcp", parentAddress(u.parent), auth, dialer(u.dial))
	if err != nil {
		return nil, err
	}
	return d.(socks.ContextDialer).DialContext(ctx, "tcp", address)
}

func (u *Upstream) dialConnect(ctx context.Context, address string) (net.Conn, error) {
	conn, err := u.dial(ctx, "tcp", parentAddress(u.parent))
	if err != nil {
		return nil, err
	}
	if u.parent.Scheme == "https" {
		c := u.tls.Clone()
		c.ServerName, c.NextProtos = u.parent.Hostname(), nil // Transport has added h2
		conn = tls.Client(conn, c)
	}
	if err := connectThrough(conn, u.parent, address, u.direct.Timeout); err != nil {
		conn.Close()
		return nil, fmt.Errorf("parent proxy %s: %w", u.parent.Redacted(), err)
	}
	return conn, nil
}

// connectThrough asks a parent proxy for a tunnel.
func connectThrough(conn net.Conn, parent *url.URL, address string, timeout time.Duration) error {
	conn.SetDeadline(time.Now().Add(timeout))
	defer conn.SetDeadline(time.Time{})
	req := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: address}, Host: address, Header: http.Header{"User-Agent": {""}}}
	if p := parent.User; p != nil {
		password, _ := p.Password()
		req.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(p.Username()+":"+password)))
	}
	if err := req.Write(conn); err != nil {
		return err
	}
	resp, err := http.ReadResponse(bufio.NewReader(&head{conn, 64 << 10}), req)
	if err != nil {
		return err
	}
	if err := wantsLogin(resp); err != nil {
		return err
	}
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("answered %s to CONNECT %s", resp.Status, address)
	}
	return nil
}

// A head is read byte by byte, so that what follows it in the tunnel is not
// swallowed by a buffer, and only so far.
type head struct {
	net.Conn
	left int
}

func (h *head) Read(p []byte) (int, error) {
	if h.left <= 0 {
		return 0, errors.New("the answer to CONNECT is too long")
	}
	h.left--
	return h.Conn.Read(p[:min(len(p), 1)])
}

func parentAddress(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = defaultPorts[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// A nameCache remembers for a minute what the guard found behind a name, since
// looking it up for every request would make a parent proxy slow.
type nameCache struct {
	mu    sync.Mutex
	known map[string]verdict
}

type verdict struct {
	err   error
	until time.Time
}

const maxNames = 4096

func (c *nameCache) get(key string, judge func() error) error {
	now := time.Now()
	c.mu.Lock()
	v, ok := c.known[key]
	c.mu.Unlock()
	if ok && now.Before(v.until) {
		return v.err
	}
	v = verdict{judge(), now.Add(time.Minute)}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil || len(c.known) >= maxNames {
		c.known = map[string]verdict{}
	}
	c.known[key] = v
	return v.err
}
