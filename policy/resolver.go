package policy

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"
)

// A library knows the robots.txt of every origin: what is in memory, else in
// the store, else what the origin answers. It goes by one set of settings.
type resolver struct {
	robots  *Robots
	fetcher fetcher
	onFetch func(Fetch)
	*sharedState
}

// A sharedState is what libraries have in common that differ in their settings: all that
// is known, and who is on the way to know more.
type sharedState struct {
	cache *cache
	large chan struct{} // see newLarge
	log   *slog.Logger

	slow *slowLimit

	ctx    context.Context // of fetches: they serve everybody, not just who asked first
	cancel context.CancelFunc

	mu      sync.Mutex
	scopes  map[string]*scopeFetches // by the key of the scope
	closed  bool                     // nothing is begun any more
	running sync.WaitGroup           // what has been
}

func newResolver(c Config) (*resolver, error) {
	cached, err := newCache(c.Robots.CacheBytes, c.Robots.MaxBytes, c.Store, c.Log)
	if err != nil {
		return nil, err
	}
	s := &sharedState{cache: cached, large: newLarge(cached.maxBytes), log: c.Log, slow: newSlowLimit(), scopes: map[string]*scopeFetches{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s.library(c), nil
}

// library returns one with the settings in c. What is kept compiled was cut at one
// length, which stays.
func (s *sharedState) library(c Config) *resolver {
	robots := c.Robots
	robots.reserve(c.Crawlers)
	robots.MaxBytes = s.cache.maxBytes
	l := &resolver{robots: &robots, fetcher: fetcher{c.Transport, &robots, s.large}, onFetch: c.OnFetch, sharedState: s}
	if l.onFetch == nil {
		l.onFetch = func(Fetch) {}
	}
	return l
}

// close ends the jobs, which is why it can wait for them: a RoundTripper
// returns when its context ends.
func (l *resolver) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.cancel()
	l.running.Wait()
	l.cache.close()
}

// ask returns what an origin's robots.txt means to the crawler with this token, by the
// record with this key. It waits for a fetch only if nothing that is known still holds.
func (l *resolver) ask(ctx context.Context, key, token, userAgent string) (Resolution, error) {
	now := time.Now()
	if e := l.cache.quick(key); e != nil {
		if s := l.robots.current(&e.Record, token, now, now); s != nil {
			if st, ok, _ := l.judge(key, token, e, s, now); ok {
				l.renew(e, s, key, token, userAgent, now)
				st.From = InMemory
				return st, nil
			}
		}
	}
	return l.wait(ctx, key, token, userAgent, need)
}

// refresh fetches although what is known may still hold. The clients for which this fetch
// does not decide fetch anew at their next request.
func (l *resolver) refresh(ctx context.Context, key, token, userAgent string) (Resolution, error) {
	asked := time.Now()
	st, err := l.wait(ctx, key, token, userAgent, force)
	if err != nil {
		return st, err
	}
	scope := ParseKey(key)
	for _, crawlers := range []bool{false, true} {
		scope.Crawlers = crawlers
		if err := l.outdate(scope.Key(), asked); err != nil {
			return st, err
		}
	}
	return st, nil
}

// outdate marks what is known under a key and was fetched before a time as no longer holding.
func (l *resolver) outdate(key string, asked time.Time) error {
	t := l.enter(key)
	defer l.leave(t)
	if err := l.load(t); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.entry == nil {
		return nil
	}
	next := &entry{Record: t.entry.Record, file: t.entry.file}
	next.Refreshed = asked
	t.entry = next
	l.cache.put(key, next)
	return nil
}

// renew fetches in the background if what holds is about to end.
func (l *resolver) renew(e *entry, s *Snapshot, key, token, userAgent string, now time.Time) {
	if !l.robots.due(&e.Record, token, s, now) || !e.renewing.CompareAndSwap(false, true) || !l.begin() {
		return
	}
	go func() {
		defer l.running.Done()
		t := l.enter(key)
		defer l.leave(t)
		if l.load(t) == nil {
			l.join(t, token, userAgent, ahead)
		}
	}()
}

// patience is how much longer a request waits than two fetches may take: that
// of somebody else, which may serve all, and its own.
const patience = time.Second

// wait takes part in jobs to an origin until one has brought an answer for
// this token. The first may bring one that binds another crawler only, or that
// is from before a refresh was asked for: then there has to be another.
func (l *resolver) wait(ctx context.Context, key, token, userAgent string, u urgency) (Resolution, error) {
	asked := time.Now()
	late := time.NewTimer(2*l.robots.Timeout + patience)
	defer late.Stop()
	t := l.enter(key)
	defer l.leave(t)
	if err := l.load(t); err != nil {
		return Resolution{}, err
	}
	for {
		f, own := l.join(t, token, userAgent, u)
		select {
		case <-f.done:
			if f.err != nil {
				return Resolution{}, f.err
			}
			now := time.Now()
			s := l.answer(f, own, token, u, now, asked)
			if s == nil {
				continue
			}
			st, ok, err := l.judge(key, token, f.entry, s, now)
			if err != nil {
				return Resolution{}, err
			}
			if !ok {
				l.forgetCopy(t, token, f.entry.Copies[token])
				continue
			}
			if u == need {
				l.renew(f.entry, s, key, token, userAgent, now)
			}
			st.From = f.layer
			return st, nil
		case <-late.C:
			return l.tooLate(t, token), nil
		case <-ctx.Done():
			return Resolution{}, context.Cause(ctx)
		}
	}
}

// answer returns what a flight has brought for a crawler, nil if nothing. Own
// says that it was a flight for that crawler.
func (l *resolver) answer(f *fetchJob, own bool, token string, u urgency, now, asked time.Time) *Snapshot {
	if u != force {
		s := l.robots.current(&f.entry.Record, token, now, asked)
		if s == nil && own {
			s = f.answer
		}
		return s
	}
	s := f.entry.newest(token)
	if own {
		s = f.answer
	}
	if s == nil || s.Fetched.Before(asked) {
		return nil
	}
	return s
}

// tooLate is the standing for who can't wait any longer: nobody knows what the
// origin answers to it, so it is unreachable.
func (l *resolver) tooLate(t *scopeFetches, token string) Resolution {
	now := time.Now()
	l.mu.Lock()
	e := t.entry
	l.mu.Unlock()
	if e == nil {
		e = &entry{}
	}
	s := &Snapshot{
		URL: t.origin + "/robots.txt", Error: "many crawlers ask for it, and the origin is slow to answer each of them",
		Fetched: now, Failures: 1, Since: now, Others: true,
	}
	st, ok, _ := l.judge(t.key, token, e, s, now)
	if !ok {
		st = l.robots.standing(s, nil, now)
	}
	st.From = Fetched
	return st
}

func (l *resolver) known(key string) (Record, bool) {
	e := l.cache.quick(key)
	if e == nil {
		e = l.cache.stored(key)
	}
	if e == nil {
		return Record{}, false
	}
	return e.Record, true
}

// judge returns what an answer means to a crawler, with the compiled rules if some are obeyed.
// ok is false if they are of a copy that binds this crawler only, and are gone.
func (l *resolver) judge(key, token string, e *entry, s *Snapshot, now time.Time) (st Resolution, ok bool, err error) {
	st = l.robots.standing(s, e.copyFor(token), now)
	if st.State != Fresh && st.State != Stale {
		return st, true, nil
	}
	obeyed := st.Snapshot
	if obeyed == e.Good {
		st.File = e.file
		return st, true, nil
	}
	own, err := l.copyEntry(key, token, obeyed)
	if own == nil {
		return st, false, err
	}
	// The evidence is the copy with its rules, of which robots.max_bytes may have left less.
	for _, s := range []**Snapshot{&st.Snapshot, &st.Answer, &st.Good} {
		if *s == obeyed {
			*s = own.Good
		}
	}
	st.File = own.file
	return st, true, nil
}

// copyEntry returns a copy that binds one token only with its body and rules, nil if they are
// gone: each is in a record of its own, which the store may have forgotten.
func (l *resolver) copyEntry(key, token string, s *Snapshot) (*entry, error) {
	key = copyKey(key, token)
	same := func(e *entry) bool { return e != nil && e.Good != nil && e.Good.Fetched.Equal(s.Fetched) }
	if e := l.cache.quick(key); same(e) {
		return e, nil
	}
	t := l.enter(key) // so that it is loaded once for all that wait for it
	defer l.leave(t)
	if err := l.load(t); err != nil || !same(t.entry) {
		return nil, err
	}
	return t.entry, nil
}

// forgetCopy drops a copy whose rules are gone, unless there is another one by now.
func (l *resolver) forgetCopy(t *scopeFetches, token string, gone *Snapshot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if gone != nil && t.entry.record().Copies[token] == gone {
		t.entry = &entry{Record: t.entry.withoutCopy(token), file: t.entry.file}
	}
}

// begin counts something that close waits for, unless close has begun.
func (l *resolver) begin() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.running.Add(1)
	return true
}

// recovered makes an error of a panic, which would end the process. It is for defer.
func (l *resolver) recovered(origin string, err *error) {
	if p := recover(); p != nil {
		l.log.Error("panic while fetching robots.txt; please report it", "origin", origin, "panic", p, "stack", string(debug.Stack()))
		*err = fmt.Errorf("fetch %s/robots.txt: internal error", origin)
	}
}

func shutDown(origin string) error {
	return fmt.Errorf("fetch %s/robots.txt: the gate is shutting down: %w", origin, context.Canceled)
}
