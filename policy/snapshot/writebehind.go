package snapshot

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"robotsgate/internal/loglimit"
)

const (
	// saveInterval is the pause after each write. It is short, since a crash loses the snapshots
	// that are not saved yet, and entries of the audit log wait for them.
	saveInterval = 100 * time.Millisecond
	// retryInterval is the pause after a write that failed.
	retryInterval = 5 * time.Second
	// saveTimeout bounds one write, also the last one in close.
	saveTimeout = 30 * time.Second
	// maxRound bounds the sets of one write, by their cost.
	maxRound = 8 << 20
	// minUnsaved is how many bytes may wait for the store, if half of the cache is less.
	minUnsaved = 40 << 20
)

// writeBehind saves entries in the background, in the order in which they were added. An entry is
// saved even if a newer one with the same key waits behind it, since requests may have been decided
// by it. It is left out if the newer one has all its answers. If the queue becomes larger
// than maxBytes, because the store fails or is slow, the oldest entries are dropped.
type writeBehind struct {
	store Store
	log   *slog.Logger

	mu       sync.Mutex
	failed   error               // why the last try to save failed; nil: it did not
	tried    chan struct{}       // closed after the next try to save
	queue    []*unsaved          // the oldest first
	newest   map[string]*unsaved // of each key
	bytes    int64               // cost of the queue
	maxBytes int64

	wake    chan struct{} // something is to be saved
	hurry   chan struct{} // without a pause before it
	stop    context.CancelFunc
	stopped chan struct{}
}

// An unsaved entry waits for the store.
type unsaved struct {
	key   string
	entry *entry
	saved []func() // called after the first try to save it
}

func (u *unsaved) cost() int64 { return u.entry.cost(u.key) }

func newWriteBehind(store Store, maxBytes int64, log *slog.Logger) *writeBehind {
	w := &writeBehind{
		store: store, log: log, newest: map[string]*unsaved{}, maxBytes: maxBytes,
		wake: make(chan struct{}, 1), hurry: make(chan struct{}, 1), stopped: make(chan struct{}),
		tried: make(chan struct{}),
	}
	ctx, stop := context.WithCancel(context.Background())
	w.stop = stop
	go w.loop(ctx)
	return w
}

// get returns the newest unsaved entry under a key, nil without any.
func (w *writeBehind) get(key string) *entry {
	w.mu.Lock()
	defer w.mu.Unlock()
	if u := w.newest[key]; u != nil {
		return u.entry
	}
	return nil
}

// add puts an entry into the queue. Saved is called after the first try to save it, unless the entry
// is given up or the process ends before. If it is not nil the entry is saved without delay.
func (w *writeBehind) add(key string, e *entry, saved func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	u := w.newest[key]
	if u != nil && u.entry.within(&e.Set) {
		w.bytes -= u.cost()
		u.entry = e
	} else {
		u = &unsaved{key: key, entry: e}
		w.queue = append(w.queue, u)
		w.newest[key] = u
	}
	w.bytes += u.cost()
	if saved != nil {
		u.saved = append(u.saved, saved)
	}
	for w.bytes > w.maxBytes && len(w.queue) > 1 {
		w.removeLocked(w.queue[0])
		w.queue[0] = nil // otherwise the array would keep it in memory
		w.queue = w.queue[1:]
	}
	nudge(w.wake)
	if saved != nil {
		nudge(w.hurry)
	}
}

// settle waits until what was added before is saved or given up, the store fails, or ctx ends.
func (w *writeBehind) settle(ctx context.Context) {
	w.mu.Lock()
	if len(w.queue) == 0 {
		w.mu.Unlock()
		return
	}
	last := w.queue[len(w.queue)-1]
	for w.failed == nil && slices.Contains(w.queue, last) {
		tried := w.tried
		w.mu.Unlock()
		select {
		case <-tried:
		case <-w.stopped:
			return
		case <-ctx.Done():
			return
		}
		w.mu.Lock()
	}
	w.mu.Unlock()
}

// failure returns why the last try to save failed, nil if it did not.
func (w *writeBehind) failure() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failed
}

// nudge wakes the receiver from a channel with a buffer of one.
func nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // woken already
	}
}

// removeLocked takes an entry that leaves the queue out of the accounts.
func (w *writeBehind) removeLocked(u *unsaved) {
	w.bytes -= u.cost()
	if w.newest[u.key] == u {
		delete(w.newest, u.key)
	}
}

// within reports whether next has every answer of r: then r need not be saved.
func (r *Set) within(next *Set) bool {
	has := func(s *Snapshot) bool { return s == nil || s == next.Good || s == next.Last }
	return has(r.Good) && has(r.Last)
}

func (w *writeBehind) loop(ctx context.Context) {
	defer close(w.stopped)
	var logged loglimit.Minute
	for stopping, failing := false, false; !stopping; {
		select {
		case <-w.wake:
		case <-ctx.Done():
			stopping = true
		}
		pause, hurry := saveInterval, w.hurry // gathers a burst into one write
		if n, err := w.save(); err != nil {
			if logged.Add() > 0 {
				w.log.Error("snapshots can't be saved, they stay in memory", "error", err, "origins", n)
			}
			pause, hurry, failing = retryInterval, nil, true
			nudge(w.wake)
		} else if failing {
			w.log.Info("snapshots are saved again")
			failing = false
		}
		select {
		case <-time.After(pause):
		case <-hurry:
		case <-ctx.Done():
		}
	}
}

// save writes the queue. If the store fails it returns how many entries it tried to write.
func (w *writeBehind) save() (tried int, err error) {
	for {
		round, saved := w.round()
		if len(round) == 0 {
			return 0, nil
		}
		sets := make(map[string]Set, len(round))
		for u, e := range round {
			sets[u.key] = e.stored()
		}
		ctx, cancel := context.WithTimeout(context.Background(), saveTimeout)
		err := w.store.Save(ctx, sets)
		cancel()
		if err == nil {
			w.remove(round)
		}
		w.mu.Lock()
		w.failed = err
		close(w.tried)
		w.tried = make(chan struct{})
		w.mu.Unlock()
		for _, f := range saved {
			f()
		}
		if err != nil {
			return len(round), err
		}
	}
}

// round returns the first of the queue that can be saved together, one of each key, with their entries
// and the functions to call after the first try to save them.
func (w *writeBehind) round() (round map[*unsaved]*entry, saved []func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	keys, bytes := map[string]bool{}, int64(0)
	round = map[*unsaved]*entry{}
	for _, u := range w.queue {
		if keys[u.key] || bytes > maxRound {
			break
		}
		round[u], keys[u.key] = u.entry, true
		saved = append(saved, u.saved...)
		u.saved = nil
		bytes += u.cost()
	}
	return round, saved
}

// remove takes entries out of the queue that the store has.
func (w *writeBehind) remove(round map[*unsaved]*entry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = slices.DeleteFunc(w.queue, func(u *unsaved) bool {
		saved := round[u] == u.entry // otherwise it is not in the round, or was replaced meanwhile
		if saved {
			w.removeLocked(u)
		}
		return saved
	})
}

// close saves the queue. Entries that are added after it are lost.
func (w *writeBehind) close() {
	w.stop()
	<-w.stopped
}
