package admin

import (
	"net/http"
	"slices"
	"time"

	"robotsgate/internal/audit"
	"robotsgate/internal/fleet"
	"robotsgate/policy"
	"robotsgate/policy/pace"
	"robotsgate/policy/snapshot"
)

// A Size is how much a cache or a store holds.
type Size struct {
	Name    string `json:"name"`
	Of      string `json:"of"` // what its entries are
	Entries int64  `json:"entries"`
	Bytes   int64  `json:"bytes"`
	Bound   int64  `json:"bound"` // on Bytes
}

// maxQueues bounds the queues on the page and in the answer of the API.
const maxQueues = 20

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
	State
	Connections Connections       `json:"connections"`
	Alerts      []Alert           `json:"alerts"`
	Unreachable []snapshot.Outage `json:"unreachable"`
	Sizes       []Size            `json:"sizes"`
	Queues      []pace.Queue      `json:"queues"`
	Waiting     int               `json:"waiting"` // in all queues
	Fleet       *fleet.Status     `json:"fleet,omitempty"`
	Evidence    *audit.Status     `json:"evidence,omitempty"`

	Paced bool      `json:"-"`
	Now   time.Time `json:"-"`
}

type crawler struct {
	Name string      `json:"name"`
	Mode policy.Mode `json:"mode"`
}

// overview answers with the data of the page.
func (a *admin) overview(*http.Request) (any, int, error) { return a.status(), http.StatusOK, nil }

func (a *admin) status() status {
	now := time.Now()
	s := status{
		Version: a.Version, Ready: true, State: a.Overview.State(),
		Connections: a.Connections(), Sizes: a.Sizes(), Unreachable: []snapshot.Outage{}, Now: now,
	}
	if err := a.Ready(); err != nil {
		s.Ready, s.NotReady = false, err.Error()
	}
	s.Started = second(s.Started)
	s.Uptime = int64(now.Sub(s.Started) / time.Second)
	known := a.Engine.Crawlers()
	s.Mode = known.Default.Mode
	all := known.Known
	if !known.RefuseUnknown && known.Named(known.Default.Name) == known.Default { // otherwise no client is the default crawler
		all = append(slices.Clip(all), known.Default)
	}
	for _, k := range all {
		s.Crawlers = append(s.Crawlers, crawler{k.Name, k.Mode})
	}
	for _, o := range a.Engine.Snapshots().Outages() {
		o.Since, o.Tried, o.Next = second(o.Since), second(o.Tried), second(o.Next)
		s.Unreachable = append(s.Unreachable, o)
	}
	s.Queues = []pace.Queue{}
	if s.Paced = a.Queues != nil; s.Paced {
		all := a.Queues()
		for _, q := range all {
			s.Waiting += q.Waiting
		}
		s.Queues = append(s.Queues, all[:min(len(all), maxQueues)]...)
	}
	if a.Fleet != nil {
		s.Fleet = new(a.Fleet())
		s.Fleet.Since = second(s.Fleet.Since)
	}
	if a.Evidence != nil {
		s.Evidence = new(a.Evidence())
		s.Evidence.Checkpoint = second(s.Evidence.Checkpoint)
	}
	s.Alerts = a.alerts(&s)
	return s
}
