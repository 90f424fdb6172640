package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"
)

// intervals say how often a gate exchanges announcements and notices with the others.
type intervals struct {
	announce time.Duration // between two announcements
	keep     time.Duration // how long a gate is listed after its last announcement
	notices  time.Duration // between two reads of the notices
}

// usual are the intervals of gates. A gate that has died is gone from all lists after 20 s, and a refresh
// reaches all gates within a second.
var usual = intervals{announce: 5 * time.Second, keep: 15 * time.Second, notices: 250 * time.Millisecond}

const (
	kindGate   = "gate"
	kindNotice = "notice"

	maxField = 64 // of an announcement

	// firstNotice is the position before all notices. A gate that has connected late has to know which
	// sets were refreshed since it started.
	firstNotice = "0-0"
)

// An announcement is what a gate says of itself.
type announcement struct {
	Version string    `json:"version"`
	Config  string    `json:"config"`
	Started time.Time `json:"started"`
}

// announce announces this gate, and notes which others there are. It is also the test whether the store
// can be used.
func (f *Fleet) announce(ctx context.Context, server server) error {
	hash := f.settings.Load().Hash
	text, err := json.Marshal(announcement{f.version, hash, f.started})
	if err != nil {
		return err
	}
	begun, sealed := f.now(), f.sealer.seal(f.gate, kindGate, text)
	all, at, err := server.announce(ctx, f.gate, sealed, f.intervals.keep)
	if err != nil {
		return err
	}
	f.checkOwn(all[f.gate], begun)
	delete(all, f.gate)
	gates := []Gate{{ID: f.gate, Version: f.version, Config: hash, Started: f.started.UTC(), Self: true}}
	for id, value := range all {
		if g, _, err := f.gateOf(id, value); err != nil {
			f.reject("gate "+id, err)
		} else {
			gates = append(gates, g)
		}
	}
	slices.SortFunc(gates, func(a, b Gate) int { return cmp.Compare(a.ID, b.ID) })
	f.mu.Lock()
	f.gates = gates
	f.mu.Unlock()
	f.compareClocks(begun.Add(f.now().Sub(begun) / 2).Sub(at).Round(time.Millisecond))
	return nil
}

// maxSkew is how much clocks may differ until the operator is warned. Times of answers are by
// the gates' own clocks.
const maxSkew = time.Second

// compareClocks warns if this gate's clock is ahead of the store's by more than maxSkew, or behind, once until
// they agree again.
func (f *Fleet) compareClocks(ahead time.Duration) {
	if differ := ahead.Abs() > maxSkew; f.skewed.Swap(differ) != differ && differ {
		f.log.Warn("this machine's clock differs from that of the fleet's store: keep the clocks of all gates within a second", "ahead", ahead)
	}
}

// checkOwn examines text, the announcement that the store had under this gate's id before the one made now. It
// warns if another gate has the same id, and tells the store of recent starts again if the store has lost it.
func (f *Fleet) checkOwn(text []byte, now time.Time) {
	f.mu.Lock()
	last := f.announced
	f.announced = now
	f.mu.Unlock()
	if last.IsZero() {
		return // it may be that of this gate before it was started again
	}
	if len(text) == 0 {
		// The store was emptied: the starts of paced requests are lost too.
		f.clock.away()
		f.pacing.Go(func() { f.clock.back(f.ctx, f.recent) })
		return
	}
	g, at, err := f.gateOf(f.gate, text)
	// After a failover of the store it may be an older one of this gate.
	if err == nil && !g.Started.Equal(f.started) && at.After(last) && f.doubled.CompareAndSwap(false, true) {
		f.log.Warn("another gate of the fleet has the same id: was its data_dir copied? Stop it, remove its file gate-id, and start it again", "gate", f.gate)
	}
}

// gateOf returns the gate that an announcement is of, and when it was made.
func (f *Fleet) gateOf(id string, value []byte) (Gate, time.Time, error) {
	text, at, err := f.sealer.open(id, kindGate, value)
	if err != nil {
		return Gate{}, at, err
	}
	if at.Before(f.now().Add(-f.intervals.keep - maxAhead)) {
		return Gate{}, at, errors.New("the announcement is old: the store may have been restored from a backup")
	}
	var a announcement
	if err := json.Unmarshal(text, &a); err != nil {
		return Gate{}, at, err
	}
	if len(id) > maxField || len(a.Version) > maxField || len(a.Config) > maxField {
		return Gate{}, at, errors.New("the announcement is too long")
	}
	return Gate{ID: id, Version: a.Version, Config: a.Config, Started: a.Started.UTC()}, at, nil
}

// notify tells all gates that the set of a key has to be read again. It returns what is left to be
// done.
func (f *Fleet) notify(ctx context.Context, key string) remainder {
	err := f.link.call(ctx, func(ctx context.Context, server server) error {
		return server.notify(ctx, f.sealer.seal(kindNotice, kindNotice, []byte(key)))
	})
	if err != nil && !errors.Is(err, errTooLong) {
		return theNotice
	}
	return nothing
}

// readNotices returns the keys in the notices since the last call, and whether there may have been others.
func (f *Fleet) readNotices(ctx context.Context) (keys []string, missed bool) {
	var all [][]byte
	var last string
	now := f.now().Round(0) // by the wall clock, which goes on while the machine sleeps
	err := f.link.call(ctx, func(ctx context.Context, server server) (err error) {
		all, last, err = server.notices(ctx, f.lastNotice)
		return err
	})
	if err != nil {
		return nil, false
	}
	missed = now.Sub(f.noticesRead) > noticesTTL || len(all) == maxNotices
	f.lastNotice, f.noticesRead = last, now
	for _, n := range all {
		key, at, err := f.sealer.open(kindNotice, kindNotice, n)
		if err == nil && at.Before(f.now().Add(-noticesTTL-maxAhead)) {
			err = errors.New("the notice is old: it was put back")
		}
		if err != nil {
			f.reject("notice", err)
			continue
		}
		keys = append(keys, string(key))
	}
	slices.Sort(keys)
	return slices.Compact(keys), missed
}

// every calls do again and again, until the gate ends.
func (f *Fleet) every(interval time.Duration, do func()) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-f.ctx.Done():
			return
		case <-ticker.C:
			do()
		}
	}
}

// leave removes this gate from the list of gates. If that fails, it is removed after f.intervals.keep.
func (f *Fleet) leave() {
	_ = f.link.call(context.Background(), func(ctx context.Context, server server) error {
		_, _, err := server.announce(ctx, f.gate, nil, f.intervals.keep)
		return err
	})
}
