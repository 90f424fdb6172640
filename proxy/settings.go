package proxy

import (
	"context"
	"net/http"
	"slices"
	"time"

	"robotsgate/internal/field"
	"robotsgate/policy"
	"robotsgate/policy/glob"
	"robotsgate/policy/pace"
)

// Limits bound what each client can use. Zero values are those of [DefaultLimits].
type Limits struct {
	MaxHeaderBytes int64         `yaml:"max_header_bytes" restart:"yes" positive:"yes"` // of a request's head
	HeaderTimeout  time.Duration `yaml:"header_timeout" restart:"yes" positive:"yes"`   // to receive a request's head
	// IdleTimeout is that of a connection without a request, of a tunnel, and of an upload.
	IdleTimeout time.Duration `yaml:"idle_timeout" restart:"yes" positive:"yes"`
}

// DefaultLimits returns the limits that suit most gates.
func DefaultLimits() Limits {
	return Limits{MaxHeaderBytes: 64 << 10, HeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}
}

// LoadLimits bound what clients have open and in progress at the same time.
type LoadLimits struct {
	MaxConnections          int `yaml:"max_connections" doc:"a whole number, such as 10000" positive:"yes"`      // of all clients; 0: [DefaultMaxConnections]
	MaxConnectionsPerClient int `yaml:"max_connections_per_client" doc:"a whole number, 0 or more, such as 100"` // by address; 0: no limit
	// MaxRequests is for the requests of all clients, and the tunnels that are passed through; 0: [DefaultMaxRequests].
	MaxRequests int `yaml:"max_requests" doc:"a whole number, such as 10000" positive:"yes"`
}

// The limits of all clients together that suit most gates.
const (
	DefaultMaxConnections = 10_000
	DefaultMaxRequests    = 10_000
)

// Settings are what may change while clients are connected. Every request is served by the
// settings that were in force when it arrived.
type Settings struct {
	Engine   *policy.Engine // required
	Upstream Upstream       // required
	// Passthrough reports hosts whose TLS is not intercepted; nil: all TLS is.
	Passthrough func(host string) bool

	Tags Tags

	Pacer Pacer // nil: there is no pace, and every allowed request is sent at once

	LoadLimits

	Config string // SHA-256 of the configuration that these settings come from, for the record

	wrapped map[*policy.Crawler]http.RoundTripper // of crawlers with Wrap, in place of Upstream
}

// A Pacer says when a request may be sent to its origin; a [*pace.Pacer] is one. The proxy waits for
// it in one place: after the decision, and before anything is sent. A passthrough tunnel is one request.
//
// [Settings] are made anew whenever the configuration changes. A Pacer must survive that, so it belongs
// to the caller.
type Pacer interface {
	// Wait returns when the request may be sent. The context ends when the client disconnects. The turn is nil if
	// the request does not count.
	Wait(ctx context.Context, r pace.Request) (*pace.Turn, error)
	// Observe is for report mode: the request is sent at once. It returns what Wait would have done, and always a turn
	// if the request counts.
	Observe(r pace.Request) (*pace.Turn, error)
}

// Tags says how far pages are read for their robots rules. The zero value reads none.
type Tags struct {
	HTML         bool          `yaml:"html"`                          // read the heads of HTML pages
	MaxHeadBytes int64         `yaml:"max_head_bytes" positive:"yes"` // of a head, after decoding; 0: that of [DefaultTags]
	HeadTimeout  time.Duration `yaml:"head_timeout" positive:"yes"`   // for a head to arrive; 0: that of [DefaultTags]
}

// DefaultTags returns the settings that suit most gates.
func DefaultTags() Tags {
	return Tags{HTML: true, MaxHeadBytes: 512 << 10, HeadTimeout: 5 * time.Second}
}

// Check reports a bound that is too low.
func (t Tags) Check(m *field.Mistakes) {
	m.Require(t.MaxHeadBytes >= 8<<10, "max_head_bytes", "%s is too little: at least 8KiB (draft-illyes-repext-03, 3.1.1)", field.Size(t.MaxHeadBytes))
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
