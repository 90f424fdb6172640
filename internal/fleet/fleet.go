// Package fleet lets several gates behave as one, through a Valkey or Redis that they share: an
// origin's robots.txt is fetched once for all, the pace holds over all, and a refresh reaches all.
// Start with [Open].
//
// The server may fail, forget and lie. Values are authenticated, and each gate applies its own
// bounds to them. While the server is away a gate goes on alone: see [Status].
package fleet

import (
	"crypto/x509"
	"log/slog"
	"time"

	"robotsgate/policy"
)

// Options are what a gate needs to join a fleet.
type Options struct {
	Address string         // redis:// or rediss://, as the key fleet.address
	Roots   *x509.CertPool // for rediss://; nil: the system's
	Key     []byte         // at least MinKey bytes
	Prefix  string         // of every key
	Timeout time.Duration  // of one call
	Local   policy.Store   // this gate's own records
	Robots  policy.Robots  // bounds of what is shared
	Log     *slog.Logger

	Gate    string // this gate's id
	Version string // of the program
	Config  string // hash of the configuration, to compare with other gates

	OnCall func(took time.Duration) // called for each call of the server that it answers; nil: none
}

// The states of a fleet's store.
const (
	Connected = "connected"
	Away      = "away"
)

// A Status is how a fleet is doing, for the status page, the API and the metrics.
type Status struct {
	Address  string    `json:"address"` // without a password
	State    string    `json:"state"`   // Connected or Away
	Since    time.Time `json:"since"`
	Error    string    `json:"error,omitempty"` // why it is away
	Gates    []Gate    `json:"gates"`           // seen last, by id; this one is always in it
	Differ   bool      `json:"configurations_differ"`
	Calls    uint64    `json:"calls"`
	Latency  float64   `json:"latency"` // seconds: an average of the last answered calls
	Failures uint64    `json:"failures"`
	Rejected uint64    `json:"rejected"` // values that were not authentic, or beyond the bounds
}

// A Gate is a gate of the fleet, as it announces itself.
type Gate struct {
	ID      string    `json:"id"`
	Version string    `json:"version"`
	Config  string    `json:"config"`
	Started time.Time `json:"started"`
	Self    bool      `json:"self,omitempty"`
}
