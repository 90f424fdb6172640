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
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"robotsgate/internal/loglimit"
	"robotsgate/policy/pace"
	"robotsgate/policy/snapshot"
)

// Options are what a gate needs to join a fleet.
type Options struct {
	Key   []byte         // at least MinKey bytes
	Local snapshot.Store // this gate's own sets
	Log   *slog.Logger

	Gate    string // this gate's id
	Version string // of the program
	Settings

	Observe func(took time.Duration) // called for each call that the store has answered; may be nil
}

// Settings are the options that may change while the gate runs.
type Settings struct {
	Config                  // of which only Timeout may change
	Roots    *x509.CertPool // for the next connection with rediss://; nil: the system's
	StaleFor time.Duration  // as the key robots.stale_for: the store keeps good copies for so long and a day
	Hash     string         // of the whole configuration, to compare with other gates
}

// A Fleet is this gate's part in a fleet. It is a [snapshot.Store]: this gate's own, and what the
// other gates share.
type Fleet struct {
	address       string // without a user and a password
	gate, version string
	local         snapshot.Store
	log           *slog.Logger
	sealer        *sealer
	link          *link
	clock         *paceClock
	recent        func() []pace.Reservation // starts of this gate
	settings      atomic.Pointer[Settings]
	started       time.Time
	intervals     intervals
	now           func() time.Time

	ctx     context.Context // ends with Close
	stop    context.CancelFunc
	running sync.WaitGroup
	pacing  sync.WaitGroup // what the link has started

	lastNotice  string        // the position; only readNotices uses it
	noticesRead time.Time     // when they last were, at first the start; only readNotices uses it
	doubled     atomic.Bool   // another gate has this one's id, which was logged
	skewed      atomic.Bool   // this machine's clock differs, which was logged
	back        chan struct{} // the store is back
	rejected    atomic.Uint64
	warned      loglimit.Minute // of rejected values

	mu        sync.Mutex
	gates     []Gate              // seen last
	announced time.Time           // when it last was; zero: never
	unshared  map[string]unshared // by key: what was saved while the store was away
	latency   float64             // seconds: an average of the last answered calls
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

// Open joins a fleet. It does not wait for the store, which may be away. The caller calls Start when
// its resolver runs, and Close in the end. An error is about the address or the key in o.
func Open(o Options) (*Fleet, error) {
	f, err := newFleet(o)
	if err != nil {
		return nil, err
	}
	a, err := parseAddress(o.Address)
	if err != nil {
		return nil, err
	}
	f.address = a.String()
	refused := false // a script, since the last time that all ran
	f.connect(o, func(ctx context.Context) (server, error) {
		s := f.settings.Load()
		server, err := dial(ctx, string(o.Address), s.Roots, o.Prefix, s.Timeout)
		if err != nil {
			return nil, err
		}
		// The probe is one script. Its success does not show that the one that the store has refused runs now.
		if _, answered := errors.AsType[answerError](f.link.status().err); answered {
			refused = true
		}
		if refused {
			if err := allRun(ctx, server, f.sealer, s.Timeout); err != nil {
				server.close()
				return nil, f.link.late(err)
			}
			refused = false
		}
		return server, nil
	})
	return f, nil
}

// newFleet returns a fleet without a connection.
func newFleet(o Options) (*Fleet, error) {
	s, err := newSealer(o.Key, o.Prefix)
	if err != nil {
		return nil, err
	}
	f := &Fleet{
		gate: o.Gate, version: o.Version, local: o.Local, log: o.Log,
		sealer: s, started: time.Now(), now: time.Now, intervals: usual, lastNotice: firstNotice, back: make(chan struct{}, 1), unshared: map[string]unshared{},
	}
	f.noticesRead = f.started.Round(0)
	f.settings.Store(&o.Settings)
	f.ctx, f.stop = context.WithCancel(context.Background())
	return f, nil
}

// connect makes the link to the store.
func (f *Fleet) connect(o Options, dial func(context.Context) (server, error)) {
	f.link = newLink(dial, o.Timeout, f.announce, f.log)
	f.link.onUp = func() {
		f.pacing.Go(func() { f.clock.back(f.ctx, f.recent) })
		f.wakeUp()
	}
	f.clock = newPaceClock(f.sealer, f.link.call, f.members, f.reject)
	f.link.onDown = f.clock.away
	f.link.observe = func(took time.Duration) {
		if o.Observe != nil {
			o.Observe(took)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.latency += (took.Seconds() - f.latency) / 16
	}
}

// Start announces the gate, makes the resolver read sets again that other gates have refreshed, and tells
// the others of the recent starts of requests whenever the store is back.
func (f *Fleet) Start(snapshots *snapshot.Resolver, recent func() []pace.Reservation) {
	f.recent = recent
	f.link.start()
	f.running.Go(func() {
		f.every(f.intervals.announce, func() { _ = f.link.call(f.ctx, f.announce) })
	})
	f.running.Go(func() {
		f.every(f.intervals.notices, func() {
			keys, missed := f.readNotices(f.ctx)
			if missed {
				snapshots.Reread()
			}
			for _, key := range keys {
				snapshots.Learn(key)
			}
		})
	})
	f.running.Go(f.catchUp)
}

// Clock returns the clock that the gates share.
func (f *Fleet) Clock() pace.Clock { return f.clock }

// Use puts changed settings in force.
func (f *Fleet) Use(s Settings) {
	f.settings.Store(&s)
	f.link.setTimeout(s.Timeout)
}

// Close leaves the fleet, and waits until no goroutine of f runs. The caller has closed the resolver before.
func (f *Fleet) Close() {
	f.stop()
	f.running.Wait()
	f.leave()
	f.link.close()
	f.pacing.Wait()
}

// Status returns how the fleet is doing.
func (f *Fleet) Status() Status {
	s := Status{Address: f.address, State: Connected, Rejected: f.rejected.Load()}
	l := f.link.status()
	s.Since, s.Calls, s.Failures = l.since, l.calls, l.failures
	if !l.up {
		s.State, s.Error = Away, l.err.Error()
	}
	hash := f.settings.Load().Hash
	f.mu.Lock()
	defer f.mu.Unlock()
	s.Gates, s.Latency = slices.Clone(f.gates), f.latency
	if !slices.ContainsFunc(s.Gates, func(g Gate) bool { return g.Self }) {
		s.Gates = append(s.Gates, Gate{ID: f.gate, Version: f.version, Config: hash, Started: f.started.UTC(), Self: true})
	}
	s.Differ = slices.ContainsFunc(s.Gates, func(g Gate) bool { return g.Config != hash })
	return s
}

// members returns the number of gates last seen, at least 1.
func (f *Fleet) members() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return max(len(f.gates), 1)
}

// reject counts a value that is treated as absent, and logs it once a minute.
func (f *Fleet) reject(what string, err error) {
	f.rejected.Add(1)
	if f.warned.Add() > 0 {
		f.log.Warn("a value in the fleet's store is ignored: do all gates have the same fleet.key_file, and right clocks?", "about", what, "error", err)
	}
}
