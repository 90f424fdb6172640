package proxy

import (
	"cmp"
	"crypto/tls"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"robotsgate/policy"
	"robotsgate/policy/glob"
	"robotsgate/policy/tagcache"
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

	Remembered *tagcache.Cache // tags of pages seen before; nil: none are kept
	Limits     Limits
	// Silence is how long an origin may send nothing in the middle of a response, or a
	// client may read nothing of it; 0: 15 minutes, as in Squid. A shorter time would cut
	// off clients that read slowly: the kernel lets a writer go on only when a third of
	// its buffer is free, which may be megabytes.
	Silence time.Duration
	Log     *slog.Logger  // nil: nothing is logged
	Done    func(*Record) // called when a request has been served; may be nil
	// Descriptors shares the file descriptors between clients and origins; nil: no bound is
	// known. It bounds how many connections are rejected at a time. When descriptors have run
	// out, the listener closes idle connections to origins.
	Descriptors *Descriptors
	// Ready is called before every decision: an error refuses the request. May be nil.
	Ready func() error
}

// Limits bound what each client can use. Zero values are those of [DefaultLimits].
type Limits struct {
	MaxHeaderBytes int           `yaml:"max_header_bytes" size:"yes" restart:"yes" positive:"yes"` // of a request's head
	HeaderTimeout  time.Duration `yaml:"header_timeout" restart:"yes" positive:"yes"`              // to receive a request's head
	// IdleTimeout is that of a connection without a request, of a tunnel, and of an upload. An HTTP/2 request waits so
	// long for memory.
	IdleTimeout time.Duration `yaml:"idle_timeout" restart:"yes" positive:"yes"`
}

// DefaultLimits returns the limits that suit most gates.
func DefaultLimits() Limits {
	return Limits{MaxHeaderBytes: 64 << 10, HeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}
}

// ConnectionLimits bound the connections of clients that are open at the same time.
type ConnectionLimits struct {
	MaxConnections          int `yaml:"max_connections" doc:"a whole number, such as 10000" positive:"yes"`           // of all clients; 0: [DefaultMaxConnections]
	MaxConnectionsPerClient int `yaml:"max_connections_per_client" doc:"a whole number, such as 100" zero:"no limit"` // by address; 0: no limit
}

// DefaultMaxConnections is the limit on the connections of all clients that suits most gates.
const DefaultMaxConnections = 10_000

// Settings are what may change while clients are connected. Every request is served by the
// settings that were in force when it arrived.
type Settings struct {
	Engine   *policy.Engine // required
	Upstream Upstream       // required
	// Passthrough reports hosts whose TLS is not intercepted; nil: all TLS is.
	Passthrough func(host string) bool

	Tags Tags

	Pacer Pacer // nil: there is no pace, and every allowed request is sent at once

	ConnectionLimits

	// Pages are further pages of the gate's own address, by path. They are asked for with GET and HEAD
	// only. No login is needed for them. May be nil.
	Pages map[string]http.Handler

	Config string // SHA-256 of the configuration that these settings come from, for the record

	wrapped map[*policy.Crawler]http.RoundTripper // of crawlers with Wrap, in place of Upstream
}

// Tags says how far pages are read for their robots rules. The zero value reads none.
type Tags struct {
	HTML         bool          `yaml:"html"`                                     // read the heads of HTML pages
	MaxHeadBytes int           `yaml:"max_head_bytes" size:"yes" positive:"yes"` // of a head, after decoding; 0: that of [DefaultTags]
	HeadTimeout  time.Duration `yaml:"head_timeout" positive:"yes"`              // for a head to arrive; 0: that of [DefaultTags]
}

// DefaultTags returns the settings that suit most gates.
func DefaultTags() Tags {
	return Tags{HTML: true, MaxHeadBytes: 512 << 10, HeadTimeout: 5 * time.Second}
}

// HTTPS says which TLS is intercepted.
type HTTPS struct {
	Intercept   bool        `yaml:"intercept"`
	Passthrough []glob.Glob `yaml:"passthrough" glob:"host" doc:"a host, such as \"*.example.com\""` // hosts that are passed through unseen
}

// Unseen reports hosts whose TLS is not intercepted. It is for [Settings].Passthrough.
func (h HTTPS) Unseen(host string) bool {
	return !h.Intercept || slices.ContainsFunc(h.Passthrough, func(g glob.Glob) bool { return g.Match(host) })
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
	s.MaxConnections = cmp.Or(s.MaxConnections, DefaultMaxConnections)
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
		o.Done = func(*Record) {}
	}
	if o.CA == nil {
		o.CA = func() []byte { return nil }
	}
	if o.Bundle == nil {
		o.Bundle = func() []byte { return nil }
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	o.Descriptors = cmp.Or(o.Descriptors, &Descriptors{})
	o.Silence = cmp.Or(o.Silence, 15*time.Minute)
	limits := DefaultLimits()
	o.Limits.MaxHeaderBytes = cmp.Or(o.Limits.MaxHeaderBytes, limits.MaxHeaderBytes)
	o.Limits.HeaderTimeout = cmp.Or(o.Limits.HeaderTimeout, limits.HeaderTimeout)
	o.Limits.IdleTimeout = cmp.Or(o.Limits.IdleTimeout, limits.IdleTimeout)
	return o, nil
}
