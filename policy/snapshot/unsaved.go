package snapshot

import (
	"context"
	"sync"
	"time"

	"robotsgate/internal/logtext"
)

const (
	// retryInterval is the pause after a try to save that failed.
	retryInterval = 5 * time.Second
	// saveTimeout bounds one try, also the last one in Close.
	saveTimeout = 30 * time.Second
	// minUnsaved is how many bytes may wait for the store, if half of the cache is less.
	minUnsaved = 40 << 20
)

// unsaved has the entries that the store could not save. They decide requests as others do, and are saved when the
// store works again. If they become too many for the memory, some are dropped.
type unsaved struct {
	trying sync.RWMutex // held by each try: for writing by one to save again

	mu       sync.Mutex
	err      error // of the last try
	entries  map[string]*entry
	bytes    int64 // cost of entries
	maxBytes int64
	retrying bool // there is a goroutine in saveAgain
	logged   logtext.Minute
}

func (u *unsaved) get(key string) *entry {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.entries[key]
}

// setLocked replaces the entry of a key, or removes it if e is nil.
func (u *unsaved) setLocked(key string, e *entry) {
	if old := u.entries[key]; old != nil {
		u.bytes -= old.cost()
		delete(u.entries, key)
	}
	if e != nil {
		u.entries[key] = e
		u.bytes += e.cost()
	}
}

// SaveError returns why snapshots can't be saved, so that they stay in memory; nil: they can.
func (r *Resolver) SaveError() error {
	r.unsaved.mu.Lock()
	defer r.unsaved.mu.Unlock()
	return r.unsaved.err
}

// save gives an entry to the store. If that fails, it is tried again in the background. The caller holds a
// place in running.
func (s *shared) save(e *entry) {
	u := &s.unsaved
	u.trying.RLock()
	defer u.trying.RUnlock()
	err := s.try(e)
	u.mu.Lock()
	defer u.mu.Unlock()
	if err == nil {
		u.setLocked(e.key, nil)
		return
	}
	u.setLocked(e.key, e)
	for key := range u.entries {
		if u.bytes <= u.maxBytes {
			break
		}
		if key != e.key {
			u.setLocked(key, nil)
		}
	}
	if !u.retrying {
		u.retrying = true
		s.running.Go(s.saveAgain)
	}
}

// saveAgain tries to save what waits until the store works, or the resolver is closed.
func (s *shared) saveAgain() {
	for {
		select {
		case <-time.After(retryInterval):
		case <-s.ctx.Done():
		}
		if s.saveWaiting() || s.ctx.Err() != nil {
			return
		}
	}
}

// saveWaiting tries to save all that waits. It stops at the first failure.
func (s *shared) saveWaiting() (done bool) {
	u := &s.unsaved
	for {
		u.trying.Lock()
		e := u.next()
		if e == nil {
			u.trying.Unlock()
			s.log.Info("snapshots are saved again")
			return true
		}
		err := s.try(e)
		if err == nil {
			u.mu.Lock()
			u.setLocked(e.key, nil)
			u.mu.Unlock()
		}
		u.trying.Unlock()
		if err != nil {
			return false
		}
	}
}

// next returns an entry that waits. If there is none, it ends the tries.
func (u *unsaved) next() *entry {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, e := range u.entries {
		return e
	}
	u.retrying = false
	return nil
}

// try saves an entry once.
func (s *shared) try(e *entry) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), saveTimeout)
	defer cancel()
	err := s.store.Save(ctx, e.key, e.stored())
	s.unsaved.mu.Lock()
	defer s.unsaved.mu.Unlock()
	if s.unsaved.err = err; err != nil && s.unsaved.logged.Add() > 0 {
		s.log.Error("snapshots can't be saved, they stay in memory", "error", err)
	}
	return err
}
