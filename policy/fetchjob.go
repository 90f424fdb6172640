package policy

import (
	"context"
	"fmt"
	"time"

	"robotsgate/policy/robotstxt"
)

// A fetchJob is one fetch, for all requests that wait for it.
type fetchJob struct {
	by        *resolver // its settings hold
	slot      string    // the crawler that it is for, see slots.go
	token     string    // of the crawler that asked first
	userAgent string
	urgency   urgency
	asked     time.Time

	done   chan struct{} // closed when the job has ended, and the rest is set
	answer *Snapshot     // what it has brought, or the answer that made it needless
	entry  *entry        // everything that is known of the origin since
	layer  Layer         // where that comes from
	err    error
}

// urgency says which known answer makes a request to the origin needless.
type urgency int

const (
	need  urgency = iota // a valid one
	ahead                // a valid one that is not due for renewal
	force                // none
)

// maxConcurrentFetches is how many fetches from one origin may be under way at once, for one scope.
const maxConcurrentFetches = 4

// join returns the job to wait for, and starts it if need be. Own says that the job is
// for this crawler: its result is the crawler's answer, even if it binds only one.
func (r *resolver) join(sf *scopeFetches, token, userAgent string, u urgency) (job *fetchJob, own bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	slot := token
	if !r.robots.hasSlot(sf.entry.record(), sf.jobs, token, now) {
		slot = NoSlot
	}
	if job = sf.jobs[slot]; job != nil {
		return job, true
	}
	if sf.lead != nil && !sf.apart {
		return sf.lead, false
	}
	job = &fetchJob{by: r, slot: slot, token: token, userAgent: userAgent, urgency: u, asked: now, done: make(chan struct{})}
	if r.robots.UserAgent != "" {
		job.userAgent = r.robots.UserAgent
	}
	sf.users++
	sf.jobs[slot], sf.lead = job, job
	r.startLocked(sf, job)
	return job, true
}

// startLocked starts a job, or queues it if as many as may are running. It ends it at once if it is
// needless by now.
func (r *resolver) startLocked(sf *scopeFetches, job *fetchJob) {
	switch s := r.needlessLocked(sf, job); {
	case r.closed:
		r.endLocked(sf, job, shutDown(sf.origin))
	case s != nil:
		job.answer, job.layer = s, InStore
		r.endLocked(sf, job, nil)
	case sf.running == maxConcurrentFetches:
		sf.queue = append(sf.queue, job)
	default:
		if sf.entry != nil {
			sf.entry.renewing.Store(true)
		}
		sf.running++
		r.running.Add(1)
		go r.run(sf, job, sf.entry, sf.permitKeyLocked(job))
	}
}

// permitKeyLocked returns the key for [Store.Acquire].
func (sf *scopeFetches) permitKeyLocked(job *fetchJob) string {
	if sf.apart {
		return copyKey(sf.key, job.slot) // so that one crawler need not wait for another
	}
	return sf.key
}

// needlessLocked returns an answer that makes a job needless, nil if there is none.
func (r *resolver) needlessLocked(sf *scopeFetches, job *fetchJob) *Snapshot {
	if job.urgency == force {
		return nil
	}
	now, rec := time.Now(), sf.entry.record()
	s := r.robots.current(rec, job.token, now, job.asked)
	if s == nil && job.slot == NoSlot && r.robots.isValid(rec.Bound[NoSlot], now, job.asked) {
		s = rec.Bound[NoSlot]
	}
	if s != nil && job.urgency == ahead && r.robots.due(rec, job.token, s, now) {
		return nil
	}
	return s
}

// run carries out a job. Its result may make queued jobs needless.
func (r *resolver) run(sf *scopeFetches, job *fetchJob, known *entry, permitKey string) {
	defer r.running.Done()
	release, changed := r.acquire(permitKey)
	if changed {
		known = r.reload(sf, known)
	}
	if changed && r.endIfNeedless(sf, job) {
		release()
		return
	}
	s, file, err := r.fetch(sf, job, known)
	r.mu.Lock()
	defer r.mu.Unlock()
	job.layer = Fetched
	if err == nil {
		r.keepLocked(sf, job, s, file, release)
	} else {
		release()
	}
	r.endRunningLocked(sf, job, err)
}

// acquire asks the store for permission to fetch. A store that panics grants it.
func (r *resolver) acquire(key string) (release func(), changed bool) {
	release = func() {}
	defer r.recovered(key, new(error))
	ctx, cancel := context.WithTimeout(r.ctx, r.robots.Timeout)
	defer cancel()
	return r.cache.store.Acquire(ctx, key)
}

// reload takes over a record that another process has saved since known was loaded. It returns
// what is known by now.
func (r *resolver) reload(sf *scopeFetches, known *entry) *entry {
	var e *entry
	if r.cache.unsaved.get(sf.key) == nil { // else this process has newer answers
		e = r.lookUp(sf, r.cache.read)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if e != nil && sf.entry == known { // else another job of this process has ended meanwhile
		sf.entry = e
		r.cache.keep(sf.key, e)
	}
	return sf.entry
}

func (r *resolver) endIfNeedless(sf *scopeFetches, job *fetchJob) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.needlessLocked(sf, job)
	if s != nil {
		job.answer, job.layer = s, InStore
		r.endRunningLocked(sf, job, nil)
	}
	return s != nil
}

// endRunningLocked ends a job that was started, and starts the queued ones.
func (r *resolver) endRunningLocked(sf *scopeFetches, job *fetchJob, err error) {
	sf.running--
	r.endLocked(sf, job, err)
	queue := sf.queue
	sf.queue = nil
	for _, job := range queue {
		job.by.startLocked(sf, job)
	}
}

func (r *resolver) endLocked(sf *scopeFetches, job *fetchJob, err error) {
	delete(sf.jobs, job.slot)
	if sf.lead == job {
		sf.lead = nil
	}
	job.entry, job.err = sf.entry, err
	close(job.done)
	r.leaveLocked(sf)
}

// fetch returns an origin's answer, with its rules compiled if it has any.
func (r *resolver) fetch(sf *scopeFetches, job *fetchJob, known *entry) (s *Snapshot, file *robotstxt.File, err error) {
	defer r.recovered(sf.origin, &err)
	begun := time.Now()
	url := sf.origin + "/robots.txt"
	s, file, err = r.fetcher.fetch(r.ctx, url, job.userAgent, r.prior(sf, job, known))
	if r.ctx.Err() != nil {
		return nil, nil, shutDown(sf.origin) // a fetch that was cut short says nothing about the origin
	}
	if err != nil {
		r.onFetch(Fetch{Origin: sf.origin, Outcome: "error", Took: time.Since(begun)})
		return nil, nil, fmt.Errorf("fetch %s: %w", url, err)
	}
	r.onFetch(Fetch{Origin: sf.origin, Outcome: string(r.robots.class(s)), Took: time.Since(begun)})
	r.log.Debug("robots.txt fetched", "origin", sf.origin, "status", s.Status, "error", s.Error, "rules", file != nil, "took", time.Since(begun))
	return s, file, nil
}

// prior returns the copy that the origin may confirm; nil if there is none.
func (r *resolver) prior(sf *scopeFetches, job *fetchJob, known *entry) *entry {
	switch good := known.record().copyFor(job.slot); good {
	case nil:
		return nil
	case known.Good:
		return known
	default:
		return r.copyEntry(r.ctx, sf.key, job.slot, good)
	}
}

// keepLocked adds the answer of a job to what is known. Other jobs may have ended since this one
// was started. Release is called when the store has the answer.
func (r *resolver) keepLocked(sf *scopeFetches, job *fetchJob, s *Snapshot, file *robotstxt.File, release func()) {
	rec := sf.entry.record()
	sf.apart = !s.shared()
	if sf.apart && job.slot == NoSlot {
		s = forOthers(s)
	}
	r.count(s, rec, job.slot)
	next := rec.add(job.slot, s)
	r.robots.vacate(&next, sf.jobs, time.Now())
	job.answer = s
	if s.good() && !s.shared() {
		// The rules of a copy for one crawler are kept in a record of their own.
		r.cache.put(copyKey(sf.key, job.slot), &entry{Record: Record{Good: s, Last: s}, file: file}, nil)
	}
	for token := range rec.Copies {
		if next.Copies[token] == nil {
			r.cache.put(copyKey(sf.key, token), &entry{}, nil) // so that the store forgets it
		}
	}
	e := &entry{Record: next}
	switch {
	case next.Good == nil:
	case next.Good == s:
		e.file = file
	default:
		e.file = sf.entry.file
	}
	sf.entry = e
	r.cache.put(sf.key, e, release)
}

// forOthers returns the answer that all crawlers without a slot share. s is the answer to one of
// them. The result has no rules, since those of s are for that crawler only.
func forOthers(s *Snapshot) *Snapshot {
	return &Snapshot{
		URL: s.URL, Status: s.Status, Fetched: s.Fetched, Lifetime: s.Lifetime, Retry: s.Retry, Looped: s.Looped, Varies: s.Varies, NoSlot: true,
		Error: fmt.Sprintf("the origin answers crawlers differently (status %d), and more crawlers ask for it than can have an answer of their own; one with configured product tokens always has one", s.Status),
	}
}

// count sets s.Since and s.Failures: since when the origin has given answers of the class of s, and
// how many failures in a row there were. If the answer before is of that class, count continues
// its figures.
func (r *resolver) count(s *Snapshot, rec *Record, key string) {
	class := r.robots.class(s)
	if class == Fresh {
		return
	}
	s.Since = s.Fetched
	before := rec.newest(key)
	if before != nil && !before.good() && r.robots.class(before) == class {
		s.Since = before.Since
		s.Failures = before.Failures
	}
	if class == Unreachable {
		s.Failures++
	}
}
