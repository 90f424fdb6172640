package proxy

import (
	"context"
	"net"
	"net/http"
	"net/url"

	"robotsgate/proxy/internal/origin"
	"robotsgate/proxy/internal/sign"
)

// An Upstream reaches origins: requests, robots.txt fetches and tunnels all leave through it.
// [NewTransport] returns one. To change what is sent, wrap that one, and give the result to
// [Settings] and to the policy engine. [Signing] wraps it for the requests of one crawler. The RoundTrip of a wrapper changes a clone of the request, with the same
// context. It must leave the Body of a 101 response an [io.ReadWriteCloser].
type Upstream interface {
	// RoundTrip sends a request to its origin. 1xx responses are passed to the
	// [net/http/httptrace.ClientTrace] in the request's context.
	http.RoundTripper
	// Check returns an error that is [ErrProhibited] if a destination is forbidden,
	// as far as that is known without a lookup of its name. It is called before the decision.
	Check(host, port string) error
	// CheckLists is Check by the lists of hosts and ports alone.
	CheckLists(host, port string) error
	// Dial opens a passthrough tunnel, under the same rules as RoundTrip. The requests in it cannot be
	// seen, so they cannot be signed.
	Dial(ctx context.Context, host, port string) (net.Conn, error)
}

// Errors of an Upstream, because of which the origin was not asked, and nothing is remembered of it.
var (
	ErrProhibited = origin.ErrProhibited
	ErrNoHost     = origin.ErrNoHost
	ErrExhausted  = origin.ErrExhausted
)

// Egress says what a Transport may connect to, and how.
type Egress = origin.Config

// CheckParent says why a URL can't be the one of a parent proxy. It does not repeat it.
func CheckParent(u *url.URL) error { return origin.CheckParent(u) }

// DefaultEgress permits all destinations but special-purpose addresses.
func DefaultEgress() Egress {
	return Egress{DialTimeout: origin.DialTimeout, ResponseHeaderTimeout: origin.ResponseHeaderTimeout, IdleTimeout: origin.IdleTimeout}
}

// A Transport is the Upstream that connects to origins, directly or through a parent proxy.
type Transport = origin.Transport

// NewTransport returns a Transport. It takes no proxy from the environment. Its connections are in
// conns, which may be nil. The error is about the parent's scheme.
func NewTransport(e Egress, conns *OriginConns) (*Transport, error) { return origin.New(e, conns) }

// OriginConns are the open connections to origins, of all Transports.
type OriginConns = origin.Conns

// Signing says how the requests of one crawler are signed (RFC 9421). See [sign.Signing].
type Signing = sign.Signing
