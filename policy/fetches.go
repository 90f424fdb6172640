package policy

import (
	"context"
	"sync"
)

// fetches are the fetches of robots.txt files that are under way.
type fetches struct {
	mu     sync.Mutex
	scopes map[string]*scopeFetches // by the key of the scope
	closed bool                     // no fetch is started any more

	running sync.WaitGroup // fetches and renewals
}

// scopeFetches are the fetches for one [Scope]. They exist while a request waits or a fetch is
// under way. All requests wait for the same fetch, unless the last answer was for one crawler
// only: then each crawler has a fetch of its own.
type scopeFetches struct {
	key    string // of the scope
	origin string
	loaded sync.Once // sets entry for the first time

	// fetches.mu guards the rest.
	users   int                  // requests and jobs; the last one removes it
	entry   *entry               // what is known by now; nil: nothing
	apart   bool                 // the last answer was for one crawler only
	lead    *fetchJob            // the newest, nil if it has ended
	jobs    map[string]*fetchJob // that have not ended, by slot
	queue   []*fetchJob          // the jobs that wait to be started
	running int                  // number of jobs that have been started
}

// stop prevents new fetches.
func (f *fetches) stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
}

// begin counts something that close waits for, unless close has begun.
func (f *fetches) begin() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return false
	}
	f.running.Add(1)
	return true
}

// enter returns the fetches for the scope of a key; the caller calls leave in the end.
func (f *fetches) enter(key string) *scopeFetches {
	f.mu.Lock()
	defer f.mu.Unlock()
	sf := f.scopes[key]
	if sf == nil {
		sf = &scopeFetches{key: key, origin: ParseKey(key).Origin, jobs: map[string]*fetchJob{}}
		f.scopes[key] = sf
	}
	sf.users++
	return sf
}

func (f *fetches) leave(sf *scopeFetches) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leaveLocked(sf)
}

func (f *fetches) leaveLocked(sf *scopeFetches) {
	if sf.users--; sf.users == 0 {
		delete(f.scopes, sf.key)
	}
}

// load looks up what is known, before the first join.
func (r *resolver) load(sf *scopeFetches) {
	sf.loaded.Do(func() {
		if sf.entry = r.lookUp(sf, r.cache.find); sf.entry != nil {
			r.cache.keep(sf.key, sf.entry)
		}
	})
}

// lookUp calls a method of the cache for all requests that wait. If it panics, nothing is known.
func (r *resolver) lookUp(sf *scopeFetches, method func(context.Context, string) *entry) (e *entry) {
	defer r.recovered(sf.origin, new(error))
	ctx, cancel := context.WithTimeout(r.ctx, r.robots.Timeout)
	defer cancel()
	return method(ctx, sf.key)
}
