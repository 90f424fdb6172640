package policy

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// A library knows the robots.txt of every origin: what is in memory, else in
// the store, else what the origin answers.
type library struct {
	robots  *Robots
	fetcher fetcher
	cache   *cache
	log     *slog.Logger
	onFetch func(Fetch)

	flights singleflight.Group // by origin
	ctx     context.Context    // of fetches: they serve everybody, not just who asked first
	cancel  context.CancelFunc

	mu     sync.Mutex
	closed bool           // no flight starts any more
	flying sync.WaitGroup // those that have
}

func newLibrary(c Config) (*library, error) {
	robots := c.Robots
	cached, err := newCache(robots.CacheBytes, robots.MaxBytes, c.Store, c.Log)
	if err != nil {
		return nil, err
	}
	l := &library{
		robots:  &robots,
		fetcher: fetcher{transport: c.Transport, robots: &robots},
		cache:   cached,
		log:     c.Log,
		onFetch: c.OnFetch,
	}
	if l.onFetch == nil {
		l.onFetch = func(Fetch) {}
	}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l, nil
}

// close ends the flights, which is why it can wait for them: a RoundTripper
// returns when its context ends.
func (l *library) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.cancel()
	l.flying.Wait()
	l.cache.close()
}

// ask returns what an origin's robots.txt means to the crawler with this
// token. It waits for a fetch only if nothing that is known still holds.
func (l *library) ask(ctx context.Context, origin, token, userAgent string) (Standing, error) {
	e := l.cache.quick(origin)
	asked := time.Now()
	for now := asked; ; now = time.Now() {
		if e != nil {
			if s := l.robots.current(&e.Record, token, now, asked); s != nil {
				if l.robots.due(s, now) && e.renewing.CompareAndSwap(false, true) {
					l.join(origin, token, userAgent, renew)
				}
				return l.judge(e, s, now), nil
			}
		}
		// Whoever flies serves all who wait for this origin. What comes back may
		// be an answer that binds another crawler only: then this one asks again.
		select {
		case res := <-l.join(origin, token, userAgent, need):
			if res.Err != nil {
				return Standing{}, res.Err
			}
			e = res.Val.(*entry)
		case <-ctx.Done():
			return Standing{}, context.Cause(ctx)
		}
	}
}

// refresh fetches although what is known may still hold. A flight under way
// may end without asking the origin, or have asked it before: then another one.
func (l *library) refresh(ctx context.Context, origin, token, userAgent string) (Standing, error) {
	for asked := time.Now(); ; {
		select {
		case res := <-l.join(origin, token, userAgent, force):
			if res.Err != nil {
				return Standing{}, res.Err
			}
			e := res.Val.(*entry)
			if s := e.newest(token); s != nil && !s.Fetched.Before(asked) {
				return l.judge(e, s, time.Now()), nil
			}
		case <-ctx.Done():
			return Standing{}, context.Cause(ctx)
		}
	}
}

func (l *library) known(origin string) (Record, bool) {
	e := l.cache.quick(origin)
	if e == nil {
		e = l.cache.stored(origin)
	}
	if e == nil {
		return Record{}, false
	}
	return e.Record, true
}

// judge adds the compiled rules to a standing that obeys some.
func (l *library) judge(e *entry, s *Snapshot, now time.Time) Standing {
	st := l.robots.standing(&e.Record, s, now)
	if st.State == Fresh || st.State == Stale {
		st.File = e.file
	}
	return st
}

// urgency says when a flight may end without asking the origin.
type urgency int

const (
	need  urgency = iota // something that holds is known by now
	renew                // something that holds, and is not due, is known by now
	force                // never
)

// join takes part in the one flight for an origin, and starts it if there is none.
func (l *library) join(origin, token, userAgent string, u urgency) <-chan singleflight.Result {
	return l.flights.DoChan(origin, func() (val any, err error) {
		// singleflight would end the process.
		defer func() {
			if p := recover(); p != nil {
				l.log.Error("panic while fetching robots.txt; please report it", "origin", origin, "panic", p, "stack", string(debug.Stack()))
				err = fmt.Errorf("fetch %s/robots.txt: internal error", origin)
			}
		}()
		if !l.takeOff() {
			return nil, shutDown(origin)
		}
		defer l.flying.Done()
		return l.fly(origin, token, userAgent, u)
	})
}

// takeOff counts a flight, unless close has begun.
func (l *library) takeOff() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.flying.Add(1)
	return true
}

func shutDown(origin string) error {
	return fmt.Errorf("fetch %s/robots.txt: the gate is shutting down: %w", origin, context.Canceled)
}

func (l *library) fly(origin, token, userAgent string, u urgency) (*entry, error) {
	now := time.Now()
	e := l.cache.load(origin)
	if e != nil && u != force {
		if s := l.robots.current(&e.Record, token, now, now.Add(1)); s != nil && (u == need || !l.robots.due(s, now)) {
			return e, nil
		}
	}
	var rec Record
	if e != nil {
		rec = e.Record
		e.renewing.Store(true) // it may just have come from the store
	}
	if l.robots.UserAgent != "" {
		userAgent = l.robots.UserAgent
	}
	s, err := l.fetcher.fetch(l.ctx, origin, userAgent, rec.Good)
	if l.ctx.Err() != nil {
		return nil, shutDown(origin) // what is cut short says nothing about the origin
	}
	if err != nil {
		l.onFetch(Fetch{Origin: origin, Outcome: "error", Took: time.Since(now)})
		return nil, fmt.Errorf("fetch %s/robots.txt: %w", origin, err)
	}
	l.count(s, &rec, token)
	l.onFetch(Fetch{Origin: origin, Outcome: string(l.robots.class(s)), Took: time.Since(now)})
	l.log.Debug("robots.txt fetched", "origin", origin, "status", s.Status, "error", s.Error, "bytes", len(s.Body), "took", time.Since(now))

	e = newEntry(rec.with(token, s), l.robots.MaxBytes)
	l.cache.put(origin, e)
	return e, nil
}

// count carries over from the answer before how long, and how often in a row,
// the origin has been answering like this.
func (l *library) count(s *Snapshot, rec *Record, token string) {
	class := l.robots.class(s)
	if class == Fresh {
		return
	}
	s.Since = s.Fetched
	before := rec.newest(token)
	if before != nil && !before.good() && l.robots.class(before) == class {
		s.Since = before.Since
		s.Failures = before.Failures
	}
	if class == Unreachable {
		s.Failures++
	}
}
