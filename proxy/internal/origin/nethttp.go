package origin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"sync/atomic"
	"time"

	"robotsgate/proxy/internal/body"
)

// Bounds on HTTP/2, in bytes.
const (
	window   = 512 << 10 // of a response that is not read
	maxFrame = 16 << 10  // each connection keeps a buffer of this size
)

// Bounds on idle connections.
const (
	maxIdle       = 4096
	maxIdleOrigin = 256
)

// maxResponseHeader bounds the head of an origin's response, in bytes.
const maxResponseHeader = 256 << 10

// netHTTP sends requests by net/http's Transport, which can send all of them.
type netHTTP struct {
	http2 *http.Transport            // for all else
	http1 *http.Transport            // for what must not speak HTTP/2
	limit time.Duration              // until the head of the response, with all attempts
	check func(*http.Response) error // of a response to a request in clear: it returns an error if it is the parent's own

	versions     recent[int]       // of HTTP with which a host has answered over TLS
	http1Origins recent[time.Time] // hosts that want HTTP/1.1, and until when that is remembered
	challenged   *recent[struct{}] // of a Session: hosts that have asked for a login; nil: it is none
}

// http1Time is how long it is remembered that a host wants HTTP/1.1.
const http1Time = 10 * time.Minute

// limit returns how long to wait for the head of a response: to connect, for the TLS handshake, and for the response.
func limit(c Config) time.Duration { return 2*c.DialTimeout + c.ResponseHeaderTimeout }

func (u *Transport) newNetHTTP(c Config) *netHTTP {
	n := &netHTTP{limit: limit(c), check: u.checkLogin, http1: u.newTransport(c, maxIdle/16)}
	n.http1.ForceAttemptHTTP2, n.http1.Protocols = false, new(http.Protocols)
	n.http1.Protocols.SetHTTP1(true)
	n.http2 = u.newTransport(c, maxIdle)
	return n
}

// newTransport returns a Transport that keeps this many idle connections.
func (u *Transport) newTransport(c Config, idle int) *http.Transport {
	dial := u.dialOrigin
	t := &http.Transport{
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			if tooManyAttempts(ctx) {
				return nil, errAttempts
			}
			return keepAnswer(dial(ctx, address))
		},
		TLSClientConfig:        u.tls.Clone(), // Transport changes it
		TLSHandshakeTimeout:    c.DialTimeout,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true, // bodies are passed on as the client asked for them
		MaxIdleConns:           idle,
		MaxIdleConnsPerHost:    maxIdleOrigin,
		MaxConnsPerHost:        c.MaxConnsPerHost,
		IdleConnTimeout:        c.IdleTimeout,
		ResponseHeaderTimeout:  c.ResponseHeaderTimeout,
		ExpectContinueTimeout:  time.Second,
		MaxResponseHeaderBytes: maxResponseHeader,
		HTTP2:                  &http.HTTP2Config{MaxReceiveBufferPerStream: window, MaxReadFrameSize: maxFrame},
	}
	if answersRequests(c.Parent) { // Transport itself sends CONNECT
		dial = func(ctx context.Context, address string) (net.Conn, error) {
			conn, err := u.dial(ctx, "tcp", address)
			return &parentConn{Conn: conn}, err
		}
		t.Proxy = http.ProxyURL(c.Parent)
		t.ProxyConnectHeader = http.Header{"User-Agent": {""}} // otherwise net/http adds its own
		t.OnProxyConnectResponse = func(_ context.Context, _ *url.URL, _ *http.Request, answer *http.Response) error {
			return u.checkConnect(answer) // before Transport makes an error of the reason phrase
		}
	}
	return t
}

// maxAttempts bounds the new connections on which Transport tries one request. An origin that refuses each over HTTP/2
// would be tried for ever.
const maxAttempts = 8

var (
	errAttempts = errors.New("the origin refuses every connection again")
	errNoAnswer = fmt.Errorf("the origin did not answer: %w", os.ErrDeadlineExceeded)
)

// RoundTrip sends a request and waits for the head of the response. Transport limits the time of one attempt, but
// makes another if an origin refuses a stream over HTTP/2.
func (n *netHTTP) RoundTrip(req *http.Request) (*http.Response, error) {
	t := n.http2
	secure := req.URL.Scheme == "https" // it may be HTTP/2
	if until, known := n.http1Origins.get(req.URL.Host); secure && known && time.Now().Before(until) {
		t = n.http1
	}
	resp, err := n.try(t, req)
	if errors.Is(err, errHTTP1) { // nothing has been sent
		n.versions.put(req.URL.Host, 1)
		resp, err = n.try(t, req)
	}
	if err != nil && wantsHTTP1.MatchString(err.Error()) { // RFC 9113, 7: only a connection over HTTP/2 can say so
		n.http1Origins.put(req.URL.Host, time.Now().Add(http1Time))
		n.versions.put(req.URL.Host, 1)
		if hasBody(req) {
			return nil, errTwice
		}
		return n.try(n.http1, req)
	}
	return resp, err
}

// try sends a request with t. The error is errHTTP1, and nothing has been sent or read of the body, if the request has
// a body and was to be sent over HTTP/2, but the connection is one over HTTP/1.
func (n *netHTTP) try(t *http.Transport, req *http.Request) (*http.Response, error) {
	host, version, out := req.URL.Host, 1, req
	secure := req.URL.Scheme == "https"
	if secure {
		version, _ = n.versions.get(host)
		out = req.WithContext(countAttempts(req.Context()))
	}
	var resp *http.Response
	var err error
	if version == 1 && !hasBody(req) && t.MaxConnsPerHost == 0 { // over HTTP/1 the limits of Transport are enough
		resp, err = t.RoundTrip(out)
	} else {
		resp, err = n.tryWithin(t, out)
	}
	if !secure {
		return n.checked(resp, err)
	}
	if err == nil && resp.ProtoMajor != version {
		n.versions.put(host, resp.ProtoMajor)
	}
	return resp, err
}

// tryWithin sends a request within the limit on its whole time.
func (n *netHTTP) tryWithin(t *http.Transport, req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context()) // not canceled on success: the response's body needs it
	limit := new(body.IdleTimer)
	limit.Init(n.limit, func() { cancel(errNoAnswer) })
	limit.Start()
	defer limit.End()
	out := req.WithContext(ctx)
	if hasBody(req) {
		out = n.withUpload(out, limit, cancel)
	}
	resp, err := t.RoundTrip(out)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil && req.Context().Err() == nil {
			err = cause // over HTTP/2 Transport returns context.Canceled
		}
		cancel(nil)
	}
	return resp, err
}

func hasBody(req *http.Request) bool { return req.Body != nil && req.Body != http.NoBody }

// checked returns a response to a request in clear if it is the origin's. The parent's 407 is not (RFC 9110, section
// 15.5.8): the origin would have no robots.txt then.
func (n *netHTTP) checked(resp *http.Response, err error) (*http.Response, error) {
	if err != nil {
		return nil, err
	}
	if err := n.check(resp); err != nil {
		resp.Body.Close()
		return nil, err
	}
	return resp, nil
}

// CloseIdleConnections closes idle connections.
func (n *netHTTP) CloseIdleConnections() {
	n.http2.CloseIdleConnections()
	n.http1.CloseIdleConnections()
}

type attemptsKey struct{}

// countAttempts returns a context that counts the new connections on which Transport sends a request. Those that were
// dialled for the request do not count: others may have taken them.
func countAttempts(ctx context.Context) context.Context {
	made := new(atomic.Int32)
	return context.WithValue(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) {
			if !info.Reused { // kept connections may all be dead, but their number is bounded
				made.Add(1)
			}
		},
	}), attemptsKey{}, made)
}

// tooManyAttempts reports whether no further connection may be dialled for the request with this context.
func tooManyAttempts(ctx context.Context) bool {
	made, _ := ctx.Value(attemptsKey{}).(*atomic.Int32)
	return made != nil && made.Load() >= maxAttempts
}
