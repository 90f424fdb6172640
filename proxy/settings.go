package proxy

import (
	"time"

	"robotsgate/policy"
)

// Settings are what may change while clients are connected. Every request is served
// by those that were in force when it came, from the first look at it to the last.
type Settings struct {
	Engine   *policy.Engine
	Upstream *Upstream
	// Passthrough reports hosts whose TLS is not to be opened.
	Passthrough func(host string) bool

	UnreachableStatus int // of a refusal because robots.txt can't be had

	Tags Tags

	MaxConnections          int
	MaxConnectionsPerClient int // by address; 0: no limit

	Config string // SHA-256 of the configuration that all this comes from, for the record
}

// Tags says how far pages are read for their robots rules.
type Tags struct {
	HTML         bool
	MaxHeadBytes int
	HeadTimeout  time.Duration
}

// Use puts other settings in force. Requests in flight finish under theirs, and no
// connection is closed.
func (p *Proxy) Use(s Settings) { p.settings.Store(&s) }
