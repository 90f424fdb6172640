package policy

import (
	"fmt"
	"sync"
	"time"

	"robotsgate/policy/robotstxt"
)

// traffic is what goes on between the gate and one origin about its robots.txt for one
// [Scope], from the first request that has to wait to the last. Where nothing says that
// answers are for one crawler only, all wait for the flight that is under way;
// from then on each asks for itself.
type scopeFetches struct {
	key    string // of the scope
	origin string
	loaded sync.Once // entry, for the first time

	// The library's mutex guards the rest.
	users   int                  // requests and jobs: the last takes it away
	entry   *entry               // what is known by now; nil: nothing
	apart   bool                 // the last answer was for one crawler only
	lead    *fetchJob            // the newest that has not landed, nil if it has
	jobs    map[string]*fetchJob // that have not landed, by slot
	queue   []*fetchJob          // those of them that wait for a lane
	running int                  // those that don't
}

// A flight is one fetch, for all who wait for it.
type fetchJob struct {
	by        *resolver // whose settings it goes by
	slot      string    // for whom
	token     string    // who asked first
	userAgent string
	urgency   urgency
	asked     time.Time

	done   chan struct{} // closed when it has landed, and the rest is set
	answer *Snapshot     // what it has brought, or made it needless
	entry  *entry        // with all that is known of the origin since
	layer  Layer         // where that comes from
	err    error
}

// urgency says when a flight may end without asking the origin.
type urgency int

const (
	need  urgency = iota // something that holds is known by now
	ahead                // something that holds, and is not due, is known by now
	force                // never
)

// maxConcurrentFetches is how many fetches from one origin may be under way at once.
const maxConcurrentFetches = 4

// enter returns the traffic for the scope of a key; leave has to follow.
func (l *resolver) enter(key string) *scopeFetches {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.scopes[key]
	if t == nil {
		t = &scopeFetches{key: key, origin: ParseKey(key).Origin, jobs: map[string]*fetchJob{}}
		l.scopes[key] = t
	}
	t.users++
	return t
}

func (l *resolver) leave(t *scopeFetches) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leaveLocked(t)
}

// left is leave for those who hold the lock.
func (l *resolver) leaveLocked(t *scopeFetches) {
	if t.users--; t.users == 0 {
		delete(l.scopes, t.key)
	}
}

// load looks up what is known. It comes before join.
func (l *resolver) load(t *scopeFetches) (err error) {
	defer l.recovered(t.origin, &err)
	t.loaded.Do(func() { t.entry = l.cache.load(t.key) })
	return nil
}

// join takes part in a flight, and starts it if need be. Own says that it is
// for this crawler: what it brings is its answer, even if it binds only one.
func (l *resolver) join(t *scopeFetches, token, userAgent string, u urgency) (f *fetchJob, own bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	slot := token
	if !l.robots.hasSlot(t.entry.record(), t.jobs, token, now) {
		slot = others
	}
	if f = t.jobs[slot]; f != nil {
		return f, true
	}
	if t.lead != nil && !t.apart {
		return t.lead, false
	}
	f = &fetchJob{by: l, slot: slot, token: token, userAgent: userAgent, urgency: u, asked: now, done: make(chan struct{})}
	if l.robots.UserAgent != "" {
		f.userAgent = l.robots.UserAgent
	}
	t.users++
	t.jobs[slot], t.lead = f, f
	l.startLocked(t, f)
	return f, true
}

// startLocked sends a flight on its way, unless it is needless by now or there is no
// lane for it yet. The caller holds the lock.
func (l *resolver) startLocked(t *scopeFetches, f *fetchJob) {
	switch s := l.needless(t, f); {
	case l.closed:
		l.finishLocked(t, f, shutDown(t.origin))
	case s != nil:
		f.answer, f.layer = s, InStore
		l.finishLocked(t, f, nil)
	case t.running == maxConcurrentFetches:
		t.queue = append(t.queue, f)
	default:
		if t.entry != nil {
			t.entry.renewing.Store(true)
		}
		t.running++
		l.running.Add(1)
		go l.run(t, f, t.entry)
	}
}

// needless returns an answer that makes a flight needless, nil if there is none.
func (l *resolver) needless(t *scopeFetches, f *fetchJob) *Snapshot {
	if f.urgency == force {
		return nil
	}
	now, rec := time.Now(), t.entry.record()
	s := l.robots.current(rec, f.token, now, f.asked)
	if s == nil && f.slot == others && l.robots.holds(rec.Bound[others], now, f.asked) {
		s = rec.Bound[others]
	}
	if s != nil && f.urgency == ahead && l.robots.due(rec, f.token, s, now) {
		return nil
	}
	return s
}

// run asks the origin. What it brings may make needless what waits for a lane.
func (l *resolver) run(t *scopeFetches, f *fetchJob, known *entry) {
	defer l.running.Done()
	s, file, err := l.fetch(t, f, known)
	l.mu.Lock()
	defer l.mu.Unlock()
	t.running--
	f.layer = Fetched
	if err == nil {
		l.keep(t, f, s, file)
	}
	l.finishLocked(t, f, err)
	queue := t.queue
	t.queue = nil
	for _, f := range queue {
		f.by.startLocked(t, f)
	}
}

// finishLocked ends a flight. The caller holds the lock.
func (l *resolver) finishLocked(t *scopeFetches, f *fetchJob, err error) {
	delete(t.jobs, f.slot)
	if t.lead == f {
		t.lead = nil
	}
	f.entry, f.err = t.entry, err
	close(f.done)
	l.leaveLocked(t)
}

// fetch returns what an origin answers, with its rules compiled if it has any.
func (l *resolver) fetch(t *scopeFetches, f *fetchJob, known *entry) (s *Snapshot, file *robotstxt.File, err error) {
	origin := t.origin
	defer l.recovered(origin, &err)
	prior, err := l.prior(t, f, known)
	if err != nil {
		return nil, nil, err
	}
	begun := time.Now()
	s, err = l.fetcher.fetch(l.ctx, origin, f.userAgent, prior)
	if l.ctx.Err() != nil {
		return nil, nil, shutDown(origin) // what is cut short says nothing about the origin
	}
	if err != nil {
		l.onFetch(Fetch{Origin: origin, Outcome: "error", Took: time.Since(begun)})
		return nil, nil, fmt.Errorf("fetch %s/robots.txt: %w", origin, err)
	}
	l.onFetch(Fetch{Origin: origin, Outcome: string(l.robots.class(s)), Took: time.Since(begun)})
	l.log.Debug("robots.txt fetched", "origin", origin, "status", s.Status, "error", s.Error, "bytes", len(s.Body), "took", time.Since(begun))
	if s.good() {
		e := newEntry(Record{Good: s, Last: s}, l.robots.MaxBytes)
		s, file = e.Good, e.file
	}
	return s, file, nil
}

// prior returns the copy that the origin may confirm, with its body; nil if there is none.
func (l *resolver) prior(t *scopeFetches, f *fetchJob, known *entry) (*Snapshot, error) {
	good := known.record().copyFor(f.slot)
	if good == nil || good == known.Good {
		return good, nil
	}
	e, err := l.copyEntry(t.key, f.slot, good)
	if e == nil {
		return nil, err
	}
	return e.Good, nil
}

// keep makes what a flight has brought part of what is known. Others may have
// landed since it departed. The caller holds the lock.
func (l *resolver) keep(t *scopeFetches, f *fetchJob, s *Snapshot, file *robotstxt.File) {
	rec := t.entry.record()
	t.apart = !s.shared()
	if t.apart && f.slot == others {
		s = forOthers(s)
	}
	l.count(s, rec, f.slot)
	next := rec.with(f.slot, s)
	l.robots.vacate(&next, t.jobs, time.Now())
	f.answer = s
	if s.good() && !s.shared() {
		f.answer = next.Copies[f.slot]
		l.cache.put(copyKey(t.key, f.slot), &entry{Record: Record{Good: s, Last: s}, file: file})
	}
	for token := range rec.Copies {
		if next.Copies[token] == nil {
			l.cache.put(copyKey(t.key, token), &entry{}) // so that the store forgets it
		}
	}
	e := &entry{Record: next}
	switch {
	case next.Good == nil:
	case next.Good == s:
		e.file = file
	default:
		e.file = t.entry.file
	}
	t.entry = e
	l.cache.put(t.key, e)
}

// forOthers returns what stands for an answer to one of many crawlers that share an answer. It
// has no rules: they would be those for one of them.
func forOthers(s *Snapshot) *Snapshot {
	return &Snapshot{
		URL: s.URL, Status: s.Status, Fetched: s.Fetched, Lifetime: s.Lifetime, Retry: s.Retry, Looped: s.Looped, Varies: s.Varies, Others: true,
		Error: fmt.Sprintf("the origin answers crawlers differently (status %d), and more crawlers ask for it than can have an answer of their own; one with configured product tokens always has one", s.Status),
	}
}

// count carries over from the answer before how long, and how often in a row,
// the origin has been answering like this.
func (l *resolver) count(s *Snapshot, rec *Record, key string) {
	class := l.robots.class(s)
	if class == Fresh {
		return
	}
	s.Since = s.Fetched
	before := rec.newest(key)
	if before != nil && !before.good() && l.robots.class(before) == class {
		s.Since = before.Since
		s.Failures = before.Failures
	}
	if class == Unreachable {
		s.Failures++
	}
}
