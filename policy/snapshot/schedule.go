package snapshot

import (
	"context"
	"runtime/debug"
	"sync"
	"time"
)

// stoppedAfter is the time of a fetch after which another gate may have had the permission for one: less than a
// permission lasts that is not renewed.
const stoppedAfter = 2 * time.Second

// scopeFetches are the fetches for one [Scope], one at a time, for which all requests wait. They exist while a request
// waits or a fetch is under way.
type scopeFetches struct {
	key    string // of scope
	scope  Scope
	loaded sync.Once // sets entry for the first time

	// shared.mu guards the rest, once loaded is done.
	users int       // requests and jobs; the last one removes it
	entry *entry    // what is known by now
	job   *fetchJob // nil if it has ended
}

// A fetchJob is one fetch, for all requests that wait for it. It ends without a request to the origin
// if there is an answer by now that is valid and was fetched after since.
type fetchJob struct {
	question // of the crawler that asked first
	asked    time.Time
	since    time.Time

	done   chan struct{} // closed when the job has ended, and the rest is set
	answer *Snapshot     // what it has brought, or the answer that made it needless
	entry  *entry        // everything that is known of the origin since
	layer  Layer         // where that comes from
	err    error
}

// enter returns the fetches for the scope of a key, in which what is known has been looked up. The
// caller calls leave in the end.
func (r *Resolver) enter(key string) *scopeFetches {
	r.mu.Lock()
	sf := r.scopes[key]
	if sf == nil {
		sf = &scopeFetches{key: key, scope: ParseKey(key), entry: &entry{}}
		r.scopes[key] = sf
	}
	sf.users++
	r.mu.Unlock()
	sf.loaded.Do(func() {
		r.guard(key, 0, func(ctx context.Context) {
			if found := r.cache.find(ctx, key); found != nil {
				sf.entry = r.cache.keepFound(key, found)
			}
		})
	})
	return sf
}

func (r *Resolver) leave(sf *scopeFetches) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if sf.users--; sf.users == 0 {
		delete(r.scopes, sf.key)
	}
}

// guard calls the store within Settings.Timeout and a margin, for all requests that wait. If it panics, it
// has done nothing.
func (r *Resolver) guard(key string, margin time.Duration, call func(context.Context)) {
	defer func() {
		if p := recover(); p != nil {
			r.log.Error("panic in the store of robots.txt; please report it", "key", key, "panic", p, "stack", string(debug.Stack()))
		}
	}()
	ctx, cancel := context.WithTimeout(r.ctx, r.settings.Timeout+margin)
	defer cancel()
	call(ctx)
}

// join returns the job to wait for, and starts it if need be.
func (r *Resolver) join(sf *scopeFetches, q question, since time.Time) *fetchJob {
	r.mu.Lock()
	defer r.mu.Unlock()
	if sf.job != nil {
		return sf.job
	}
	job := &fetchJob{question: q, asked: time.Now(), since: since, done: make(chan struct{})}
	if r.ctx.Err() != nil {
		job.err = shutDown(sf.scope)
		close(job.done)
		return job
	}
	sf.users++
	sf.job = job
	r.running.Go(func() { r.run(sf, job) })
	return job
}

// run carries out a job.
func (r *Resolver) run(sf *scopeFetches, job *fetchJob) {
	defer r.leave(sf)
	r.mu.Lock()
	known := sf.entry
	s := r.answeredLocked(sf, job)
	if s == nil {
		known.renewing.Store(true)
	}
	r.mu.Unlock()
	var file content
	var err error
	var release func()
	job.layer = InStore
	if s == nil {
		release, known, s = r.permitted(sf, job, known)
	}
	if s == nil {
		job.layer = Fetched
		begun := time.Now().Round(0) // by the wall clock, which goes on while a virtual machine is paused
		s, file, err = r.fetch(sf, job, known)
		failed := err != nil || job.settings.Classify(s) == Unreachable
		if r.config.Shared && (failed || time.Now().Round(0).Sub(begun) > stoppedAfter) {
			// Another gate may have an answer by now, above all if this one was stopped meanwhile. Then
			// the failure says nothing about the origin, and an answer is older than that of a later fetch.
			if _, answer := r.reload(sf, job); answer != nil && (failed || answer.Fetched.After(begun)) {
				s, file, err, job.layer = answer, nil, nil, InStore
			}
		}
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	if job.layer == Fetched && err == nil {
		r.keepLocked(sf, s, file, release)
	} else if release != nil {
		release()
	}
	sf.job = nil
	job.answer, job.entry, job.err = s, sf.entry, err
	close(job.done)
}

// permitted waits for the permission to fetch, and learns what other processes have saved until then. It
// returns what is known by now, and an answer that makes the job needless, if there is one.
func (r *Resolver) permitted(sf *scopeFetches, job *fetchJob, known *entry) (release func(), now *entry, s *Snapshot) {
	changed := false
	r.guard(sf.key, permitMargin, func(ctx context.Context) { release, changed = r.cache.store.Acquire(ctx, sf.key) })
	if changed {
		known, s = r.reload(sf, job)
	}
	return release, known, s
}

// answeredLocked returns an answer that makes a job needless, nil if there is none.
func (r *Resolver) answeredLocked(sf *scopeFetches, job *fetchJob) *Snapshot {
	s := job.settings.current(&sf.entry.Set, time.Now(), job.asked)
	if s == nil || !s.Fetched.After(job.since) {
		return nil
	}
	return s
}

// reload learns what other processes have saved. It returns what is known by now, and an answer that makes
// the job needless, if there is one.
func (r *Resolver) reload(sf *scopeFetches, job *fetchJob) (*entry, *Snapshot) {
	r.learn(sf)
	r.mu.Lock()
	defer r.mu.Unlock()
	return sf.entry, r.answeredLocked(sf, job)
}
