package policy

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"
)

// A resolver returns what the robots.txt of an origin means to a crawler. It looks in
// memory, in the store, and then asks the origin. It has one set of settings.
type resolver struct {
	robots  *Robots
	fetcher fetcher
	onFetch func(Fetch)
	*shared
}

// shared is what the resolvers of several settings have in common, see [Engine.Reconfigured].
type shared struct {
	cache *cache
	large chan struct{} // see newLarge
	slow  *slowLimit
	log   *slog.Logger

	ctx     context.Context // of fetches: they serve all crawlers, not only the first that asked
	cancel  context.CancelFunc
	running sync.WaitGroup // fetches and renewals; none is started when ctx has ended

	mu     sync.Mutex
	scopes map[string]*scopeFetches // by the key of the scope
}

// A question asks for the robots.txt that decides about a request.
type question struct {
	key       string // of the record
	token     string // the crawler's, by TokenKey
	userAgent string
}

func newResolver(c Config) (*resolver, error) {
	cache, err := newCache(c.Robots.CacheBytes, c.Robots.MaxBytes, c.Store, c.Log)
	if err != nil {
		return nil, err
	}
	s := &shared{
		cache: cache, large: newLarge(c.Robots.MaxBytes), slow: newSlowLimit(), log: c.Log, scopes: map[string]*scopeFetches{},
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s.resolver(c), nil
}

// resolver returns one with the settings in c. All compiled files were cut at the same
// length, so MaxBytes stays as it is.
func (s *shared) resolver(c Config) *resolver {
	robots := c.Robots
	robots.reserve(c.Crawlers)
	robots.MaxBytes = s.cache.maxBytes
	return &resolver{robots: &robots, fetcher: fetcher{c.Transport, &robots, c.Hints, s.large}, onFetch: c.OnFetch, shared: s}
}

// close cancels the fetches, and waits for them: a RoundTripper returns when its context ends.
func (s *shared) close() {
	s.mu.Lock()
	s.cancel()
	s.mu.Unlock()
	s.running.Wait()
	s.cache.close()
}

// resolve returns what an origin's robots.txt means to a crawler. It waits for a fetch only if no
// known answer is still valid.
func (r *resolver) resolve(ctx context.Context, q question) (Resolution, error) {
	now := time.Now()
	if e := r.cache.get(q.key); e != nil {
		if s := r.robots.current(&e.Record, q.token, now, now); s != nil {
			if res, ok := r.judge(q, e, s, now); ok {
				r.renew(q, e, s, now)
				res.From = InMemory
				return res, nil
			}
		}
	}
	return r.wait(ctx, q, time.Time{})
}

// peek returns what is known without a fetch; due says that the next request would start one.
// ok is false if nothing is known that is for this crawler.
func (r *resolver) peek(ctx context.Context, q question) (res Resolution, due, ok bool) {
	e := r.cache.find(ctx, q.key)
	if e == nil {
		return Resolution{}, false, false
	}
	now := time.Now()
	s := r.robots.current(&e.Record, q.token, now, now)
	if s == nil {
		s, due = e.newest(q.token), true
	}
	if s == nil {
		return Resolution{}, false, false
	}
	res, ok = r.judge(q, e, s, now)
	return res, due, ok
}

// refresh fetches although a known answer may still be valid. The other crawlers fetch anew at
// their next request.
func (r *resolver) refresh(ctx context.Context, q question) (Resolution, error) {
	asked := time.Now()
	res, err := r.wait(ctx, q, asked)
	if err != nil {
		return res, err
	}
	scope := ParseKey(q.key)
	for _, crawlers := range []bool{false, true} {
		scope.Crawlers = crawlers
		r.outdate(scope.Key(), asked)
	}
	return res, nil
}

// outdate marks the answers under a key that were fetched before a time as no longer valid.
func (r *resolver) outdate(key string, asked time.Time) {
	sf := r.enter(key)
	defer r.leave(sf)
	r.mu.Lock()
	defer r.mu.Unlock()
	if !sf.entry.Empty() {
		next := &entry{Record: sf.entry.Record, file: sf.entry.file}
		next.Refreshed = asked
		sf.entry = next
		r.cache.put(key, next, nil)
	}
}

// renew starts a fetch in the background if an answer is about to end.
func (r *resolver) renew(q question, e *entry, s *Snapshot, now time.Time) {
	if !r.robots.due(&e.Record, q.token, s, now) || !e.renewing.CompareAndSwap(false, true) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ctx.Err() == nil {
		r.running.Go(func() {
			sf := r.enter(q.key)
			defer r.leave(sf)
			r.join(sf, q, s.Fetched)
		})
	}
}

// waitMargin is how much longer a request waits than two fetches may take: one for another
// crawler, which may serve all, and its own.
const waitMargin = time.Second

// wait joins fetches from an origin until one has brought an answer for this crawler that was not
// fetched before since. The first may bring one that binds another crawler only, or one
// from before a refresh was asked for: then another fetch is needed.
func (r *resolver) wait(ctx context.Context, q question, since time.Time) (Resolution, error) {
	asked := time.Now()
	late := time.NewTimer(2*r.robots.Timeout + waitMargin)
	defer late.Stop()
	sf := r.enter(q.key)
	defer r.leave(sf)
	for {
		job, own := r.join(sf, q, since)
		select {
		case <-job.done:
		case <-late.C:
			return r.tooLate(q, sf), nil
		case <-ctx.Done():
			return Resolution{}, context.Cause(ctx)
		}
		if job.err != nil {
			return Resolution{}, job.err
		}
		now := time.Now()
		s := r.robots.current(&job.entry.Record, q.token, now, asked)
		if own && (s == nil || s.Fetched.Before(since)) {
			s = job.answer
		}
		if s == nil || s.Fetched.Before(since) {
			continue
		}
		res, ok := r.judge(q, job.entry, s, now)
		if !ok {
			r.forgetCopy(sf, q.token, job.entry.Copies[q.token])
			continue
		}
		r.renew(q, job.entry, s, now)
		res.From = job.layer
		return res, nil
	}
}

// tooLate is the result for a request that can't wait any longer: the origin's answer to
// it is not known, so it is unreachable.
func (r *resolver) tooLate(q question, sf *scopeFetches) Resolution {
	now := time.Now()
	r.mu.Lock()
	e := sf.entry
	r.mu.Unlock()
	s := &Snapshot{
		URL: sf.origin + "/robots.txt", Error: "many crawlers ask for it, and the origin is slow to answer each of them",
		Fetched: now, Failures: 1, Since: now, NoSlot: true,
	}
	res, ok := r.judge(q, e, s, now)
	if !ok {
		res = r.robots.ResolveAt(s, nil, now)
	}
	res.From = Fetched
	return res
}

// judge returns what an answer means to a crawler, with the compiled rules if some are obeyed.
// ok is false if they are of a copy that binds this crawler only, and are gone.
func (r *resolver) judge(q question, e *entry, s *Snapshot, now time.Time) (res Resolution, ok bool) {
	res = r.robots.ResolveAt(s, e.copyFor(q.token), now)
	if res.State != Fresh && res.State != Stale {
		return res, true
	}
	obeyed := res.Snapshot
	if obeyed == e.Good {
		res.File = e.file
		return res, true
	}
	own := r.copyEntry(q.key, q.token, obeyed)
	if own == nil {
		return res, false
	}
	// The evidence is the copy with its rules, which a lower Robots.MaxBytes may have cut.
	for _, s := range []**Snapshot{&res.Snapshot, &res.Answer, &res.Good} {
		if *s == obeyed {
			*s = own.Good
		}
	}
	res.File = own.file
	return res, true
}

// copyEntry returns the copy that binds one token only, with its rules. It returns nil if the
// rules are gone: they are in a record of their own, which the store may have forgotten.
func (r *resolver) copyEntry(key, token string, s *Snapshot) *entry {
	key = copyKey(key, token)
	e := r.cache.get(key)
	if e == nil {
		sf := r.enter(key) // so that it is loaded once for all requests that wait for it
		defer r.leave(sf)
		e = sf.entry
	}
	if e.Good == nil || !e.Good.Fetched.Equal(s.Fetched) {
		return nil
	}
	return e
}

// recovered logs a panic, which would end the process, and returns an error in its place. It is for defer.
func (s *shared) recovered(origin string, err *error) {
	if p := recover(); p != nil {
		s.log.Error("panic while fetching robots.txt; please report it", "origin", origin, "panic", p, "stack", string(debug.Stack()))
		*err = fmt.Errorf("fetch %s/robots.txt: internal error", origin)
	}
}

func shutDown(origin string) error {
	return fmt.Errorf("fetch %s/robots.txt: the gate is shutting down: %w", origin, context.Canceled)
}
