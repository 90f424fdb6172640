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
type traffic struct {
	key    string // of the scope
	origin string
	loaded sync.Once // entry, for the first time

	// The library's mutex guards the rest.
	visitors int                // requests and flights: the last takes it away
	entry    *entry             // what is known by now; nil: nothing
	apart    bool               // the last answer was for one crawler only
	lead     *flight            // the newest that has not landed, nil if it has
	flights  map[string]*flight // that have not landed, by seat
	queue    []*flight          // those of them that wait for a lane
	flying   int                // those that don't
}

// A flight is one fetch, for all who wait for it.
type flight struct {
	by        *library // whose settings it goes by
	seat      string   // for whom
	token     string   // who asked first
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

// lanes is how many fetches from one origin may be under way at once.
const lanes = 4

// enter returns the traffic for the scope of a key; leave has to follow.
func (l *library) enter(key string) *traffic {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.traffics[key]
	if t == nil {
		t = &traffic{key: key, origin: ParseKey(key).Origin, flights: map[string]*flight{}}
		l.traffics[key] = t
	}
	t.visitors++
	return t
}

func (l *library) leave(t *traffic) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left(t)
}

// left is leave for those who hold the lock.
func (l *library) left(t *traffic) {
	if t.visitors--; t.visitors == 0 {
		delete(l.traffics, t.key)
	}
}

// load looks up what is known. It comes before join.
func (l *library) load(t *traffic) (err error) {
	defer l.recovered(t.origin, &err)
	t.loaded.Do(func() { t.entry = l.cache.load(t.key) })
	return nil
}

// join takes part in a flight, and starts it if need be. Own says that it is
// for this crawler: what it brings is its answer, even if it binds only one.
func (l *library) join(t *traffic, token, userAgent string, u urgency) (f *flight, own bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	seat := token
	if !l.robots.seated(t.entry.record(), t.flights, token, now) {
		seat = others
	}
	if f = t.flights[seat]; f != nil {
		return f, true
	}
	if t.lead != nil && !t.apart {
		return t.lead, false
	}
	f = &flight{by: l, seat: seat, token: token, userAgent: userAgent, urgency: u, asked: now, done: make(chan struct{})}
	if l.robots.UserAgent != "" {
		f.userAgent = l.robots.UserAgent
	}
	t.visitors++
	t.flights[seat], t.lead = f, f
	l.depart(t, f)
	return f, true
}

// depart sends a flight on its way, unless it is needless by now or there is no
// lane for it yet. The caller holds the lock.
func (l *library) depart(t *traffic, f *flight) {
	switch s := l.needless(t, f); {
	case l.closed:
		l.land(t, f, shutDown(t.origin))
	case s != nil:
		f.answer, f.layer = s, InStore
		l.land(t, f, nil)
	case t.flying == lanes:
		t.queue = append(t.queue, f)
	default:
		if t.entry != nil {
			t.entry.renewing.Store(true)
		}
		t.flying++
		l.flying.Add(1)
		go l.fly(t, f, t.entry)
	}
}

// needless returns an answer that makes a flight needless, nil if there is none.
func (l *library) needless(t *traffic, f *flight) *Snapshot {
	if f.urgency == force {
		return nil
	}
	now, rec := time.Now(), t.entry.record()
	s := l.robots.current(rec, f.token, now, f.asked)
	if s == nil && f.seat == others && l.robots.holds(rec.Bound[others], now, f.asked) {
		s = rec.Bound[others]
	}
	if s != nil && f.urgency == ahead && l.robots.due(rec, f.token, s, now) {
		return nil
	}
	return s
}

// fly asks the origin. What it brings may make needless what waits for a lane.
func (l *library) fly(t *traffic, f *flight, known *entry) {
	defer l.flying.Done()
	s, file, err := l.fetch(t, f, known)
	l.mu.Lock()
	defer l.mu.Unlock()
	t.flying--
	f.layer = Fetched
	if err == nil {
		l.keep(t, f, s, file)
	}
	l.land(t, f, err)
	queue := t.queue
	t.queue = nil
	for _, f := range queue {
		f.by.depart(t, f)
	}
}

// land ends a flight. The caller holds the lock.
func (l *library) land(t *traffic, f *flight, err error) {
	delete(t.flights, f.seat)
	if t.lead == f {
		t.lead = nil
	}
	f.entry, f.err = t.entry, err
	close(f.done)
	l.left(t)
}

// fetch returns what an origin answers, with its rules compiled if it has any.
func (l *library) fetch(t *traffic, f *flight, known *entry) (s *Snapshot, file *robotstxt.File, err error) {
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
func (l *library) prior(t *traffic, f *flight, known *entry) (*Snapshot, error) {
	good := known.record().copyFor(f.seat)
	if good == nil || good == known.Good {
		return good, nil
	}
	e, err := l.copyEntry(t.key, f.seat, good)
	if e == nil {
		return nil, err
	}
	return e.Good, nil
}

// keep makes what a flight has brought part of what is known. Others may have
// landed since it departed. The caller holds the lock.
func (l *library) keep(t *traffic, f *flight, s *Snapshot, file *robotstxt.File) {
	rec := t.entry.record()
	t.apart = !s.shared()
	if t.apart && f.seat == others {
		s = forOthers(s)
	}
	l.count(s, rec, f.seat)
	next := rec.with(f.seat, s)
	l.robots.vacate(&next, t.flights, time.Now())
	f.answer = s
	if s.good() && !s.shared() {
		f.answer = next.Copies[f.seat]
		l.cache.put(copyKey(t.key, f.seat), &entry{Record: Record{Good: s, Last: s}, file: file})
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
func (l *library) count(s *Snapshot, rec *Record, key string) {
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
