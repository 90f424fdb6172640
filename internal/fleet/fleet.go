// Package fleet lets several gates behave as one, through a Valkey or Redis that they share: an
// origin's robots.txt is fetched once for all, the pace holds over all, and a refresh reaches all.
// Start with [Open].
//
// The store may fail, lose values and return wrong ones. Values are authenticated, and each gate
// applies its own bounds to them. While the store is away a gate goes on alone: see [Status].
package fleet

import (
	"context"
	"crypto/x509"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"robotsgate/internal/logtext"
	"robotsgate/policy/pace"
	"robotsgate/policy/snapshot"
)

// Options are what a gate needs to join a fleet.
type Options struct {
	Key   []byte         // at least MinKey bytes
	Local snapshot.Store // this gate's own sets
	Log   *slog.Logger
	Gate  string // this gate's id
	Settings
}

// Settings are the options that may change while the gate runs.
type Settings struct {
	Config                  // of which only Timeout may change
	Roots    *x509.CertPool // for the next connection with rediss://; nil: the system's
	StaleFor time.Duration  // as the key robots.stale_for: the store keeps good copies for so long and a day
}

// A Fleet is this gate's part in a fleet. It is a [snapshot.Store]: this gate's own, and what the
// other gates share.
type Fleet struct {
	address  string // without a user and a password
	prefix   string // of every key
	gate     string
	local    snapshot.Store
	log      *slog.Logger
	sealer   sealer
	server   *server
	link     *link
	clock    *paceClock
	recent   func() []pace.Reservation // starts of this gate
	settings atomic.Pointer[Settings]
	gates    atomic.Int64 // seen last
	checked  time.Time    // the store, last; only check uses it
	rejected atomic.Uint64
	warned   logtext.Minute // of rejected values

	ctx     context.Context // ends with Close
	stop    context.CancelFunc
	running sync.WaitGroup
}

// The states of a fleet's store.
const (
	Connected = "connected"
	Away      = "away"
)

// A Status is how a fleet is doing, for the status page, the API and the metrics.
type Status struct {
	Address  string    `json:"address"` // without a user and a password
	State    string    `json:"state"`   // Connected or Away
	Since    time.Time `json:"since"`
	Error    string    `json:"error,omitempty"` // why it is away
	Gates    int       `json:"gates"`           // seen last, with this one
	Calls    uint64    `json:"calls"`
	Failures uint64    `json:"failures"`
	Rejected uint64    `json:"rejected"` // values that were not authentic, or beyond the bounds
}

// Open joins a fleet. It does not wait for the store, which may be away. The caller calls Start when
// its resolver runs, and Close in the end. An error is about the address or the key in o.
func Open(o Options) (*Fleet, error) {
	a, err := parseAddress(o.Address)
	if err != nil {
		return nil, err
	}
	seal, err := newSealer(o.Key)
	if err != nil {
		return nil, err
	}
	f := &Fleet{address: o.Address.withoutLogin(), prefix: o.Prefix, gate: o.Gate, local: o.Local, log: o.Log, sealer: seal}
	f.ctx, f.stop = context.WithCancel(context.Background())
	f.settings.Store(&o.Settings)
	f.gates.Store(1)
	f.server = &server{address: a, ctx: f.ctx, roots: func() *x509.CertPool { return f.settings.Load().Roots }}
	f.clock = &paceClock{reserve: f.reserve, pause: f.pause, gates: func() int { return int(f.gates.Load()) }}
	f.link = newLink(o.Timeout, o.Log)
	f.link.onDown = f.clock.away
	f.link.onUp = func() { f.running.Go(func() { f.clock.back(f.ctx, f.recent) }) }
	return f, nil
}

// Start connects to the store, for which it waits no longer than one call may take: a gate that decides alone would
// fetch what others know. From then on the resolver reads sets again that other gates have refreshed, and the others
// are told of the recent starts of requests whenever the store is back.
func (f *Fleet) Start(snapshots *snapshot.Resolver, recent func() []pace.Reservation) {
	f.recent = recent
	tried := make(chan struct{})
	f.running.Go(func() { f.link.run(f.ctx, f.check, func() { close(tried) }) })
	select {
	case <-tried:
	case <-time.After(f.settings.Load().Timeout):
	}
	f.running.Go(func() { f.followRefreshes(snapshots) })
}

// Clock returns the clock that the gates share.
func (f *Fleet) Clock() pace.Clock { return f.clock }

// Use puts changed settings in force.
func (f *Fleet) Use(s Settings) {
	f.settings.Store(&s)
	f.link.timeout.Store(int64(s.Timeout))
}

// Close leaves the fleet, and waits until no goroutine of f runs. The caller has closed the resolver before.
func (f *Fleet) Close() {
	f.stop()
	f.running.Wait()
	f.server.close()
}

// Status returns how the fleet is doing.
func (f *Fleet) Status() Status {
	s := Status{Address: f.address, State: Connected, Gates: int(f.gates.Load()), Rejected: f.rejected.Load()}
	s.Calls, s.Failures = f.link.calls.Load(), f.link.failures.Load()
	var err error
	if s.Since, err = f.link.state(); err != nil {
		s.State, s.Error = Away, err.Error()
	}
	return s
}

// key returns the name of a key of the store. Kind says what is stored there.
func (f *Fleet) key(kind, text string) string { return f.prefix + ":" + kind + ":" + text }

// reject counts a value that is treated as absent, and logs it once a minute.
func (f *Fleet) reject(what string, err error) {
	f.rejected.Add(1)
	if f.warned.Add() > 0 {
		f.log.Warn("a value in the fleet's store is ignored: do all gates have the same fleet.key_file, and right clocks?", "about", what, "error", err)
	}
}
