package admin

import (
	"sync"
	"time"

	"robotsgate/internal/overview"
	"robotsgate/policy"
)

// A Size is how much a cache or a store holds.
type Size struct {
	Name    string `json:"name"`
	Of      string `json:"of"` // what its entries are
	Entries int64  `json:"entries"`
	Bytes   int64  `json:"bytes"`
	Bound   int64  `json:"bound"` // on Bytes
}

// Connections are the open client connections.
type Connections struct {
	Open    int `json:"open"`
	Tunnels int `json:"tunnels"` // of those, after a CONNECT
}

// status is the data of the page, and the answer of /api/overview.
type status struct {
	Version string      `json:"version"`
	Mode    policy.Mode `json:"mode"`
	// Crawlers are the configured ones, in order, and the one for all other clients unless
	// these are refused.
	Crawlers []crawler `json:"crawlers"`
	Ready    bool      `json:"ready"`
	NotReady string    `json:"not_ready,omitempty"` // why
	Uptime   int64     `json:"uptime"`              // seconds
	overview.State
	Connections Connections `json:"connections"`
	Unreachable []outage    `json:"unreachable"`
	Sizes       []Size      `json:"sizes"`

	Now time.Time `json:"-"`
}

type crawler struct {
	Name string      `json:"name"`
	Mode policy.Mode `json:"mode"`
}

// An outage is a policy.Outage as JSON.
type outage struct {
	Origin    string       `json:"origin"`
	Crawlers  bool         `json:"crawlers,omitempty"`       // for the configured crawlers; otherwise for other clients
	Tokens    []string     `json:"product_tokens,omitempty"` // empty: for all crawlers
	Meanwhile policy.State `json:"meanwhile"`                // unreachable: no rules are in force, see Allowed
	Allowed   bool         `json:"allowed,omitempty"`
	Status    int          `json:"status,omitempty"`
	Error     string       `json:"error"`
	Failures  int          `json:"failures"`
	Since     time.Time    `json:"since"`
	Tried     time.Time    `json:"tried"`
	Next      time.Time    `json:"next"` // a request tries again from then on
}

// cachedSizes are the sizes that were measured last.
type cachedSizes struct {
	mu    sync.Mutex
	at    time.Time
	sizes []Size
}

// measureEvery is how long sizes are used again: to measure a cache takes time.
const measureEvery = time.Second

func (a *admin) sizes(now time.Time) []Size {
	m := &a.cachedSizes
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.at.IsZero() || now.Sub(m.at) >= measureEvery || now.Before(m.at) {
		m.at, m.sizes = now, a.Sizes()
	}
	return m.sizes
}

func (a *admin) status() status {
	now := time.Now()
	s := status{
		Version: a.Version, Ready: true, State: a.Overview.State(),
		Connections: a.Connections(), Sizes: a.sizes(now), Unreachable: []outage{}, Now: now,
	}
	if err := a.Ready(); err != nil {
		s.Ready, s.NotReady = false, err.Error()
	}
	s.Started = second(s.Started)
	s.Uptime = int64(now.Sub(s.Started) / time.Second)
	known := a.Engine.Crawlers()
	s.Mode = known.Default.Mode
	named := false
	for _, k := range known.Known {
		s.Crawlers = append(s.Crawlers, crawler{k.Name, k.Mode})
		named = named || k.Name == known.Default.Name
	}
	if !named && !known.RefuseUnknown { // otherwise no client has the default name
		s.Crawlers = append(s.Crawlers, crawler{known.Default.Name, known.Default.Mode})
	}
	for _, o := range a.Engine.Outages() {
		s.Unreachable = append(s.Unreachable, outage{
			o.Origin, o.Crawlers, o.Tokens, o.State, o.Allow, o.Status, o.Error, o.Failures, second(o.Since), second(o.Tried), second(o.Next),
		})
	}
	return s
}
