package policy

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"time"
)

// A question asks for the robots.txt that decides about a request, or for the tdmrep.json.
type question struct {
	settings  *Robots // by which answers are read
	key       string  // of the record
	slot      string  // the crawler's
	userAgent string  // of the fetch
	transport http.RoundTripper
}

// resolve returns what an origin's robots.txt means to a crawler. It waits for a fetch only if no
// known answer is still valid.
func (e *Engine) resolve(ctx context.Context, q question) (Resolution, error) {
	if res, ok := e.inMemory(q); ok {
		return res, nil
	}
	return e.wait(ctx, q, time.Time{})
}

// inMemory returns what an answer in memory means to a crawler, if it is still valid.
func (e *Engine) inMemory(q question) (res Resolution, ok bool) {
	known := e.cache.get(q.key)
	if known == nil {
		return Resolution{}, false
	}
	now := time.Now()
	s := q.settings.current(&known.Record, q.slot, now, now)
	if s == nil {
		return Resolution{}, false
	}
	if res, ok = e.judge(q, known, s, now); !ok {
		return Resolution{}, false
	}
	e.renew(q, known, s, now)
	res.From = InMemory
	return res, true
}

// renew starts a fetch in the background if an answer is about to end.
func (e *Engine) renew(q question, known *entry, s *Snapshot, now time.Time) {
	if !q.settings.due(&known.Record, q.slot, s, now) || !known.renewing.CompareAndSwap(false, true) {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ctx.Err() == nil {
		e.running.Go(func() {
			sf := e.enter(q.key)
			defer e.leave(sf)
			e.join(sf, q, s.Fetched)
		})
	}
}

const (
	// waitMargin is how much longer a request waits than two fetches may take: one for another
	// crawler, or by another gate, which may serve all, and its own.
	waitMargin = time.Second
	// permitMargin is how much longer a gate waits for the fetch of another one than that may take.
	// The other one may have been killed, and its permission has to end, before a third one fetches.
	permitMargin = 4 * time.Second
)

// wait joins fetches from an origin until one has brought an answer for this crawler that was not
// fetched before since. The first may bring one that binds another crawler only, or one
// from before a refresh was asked for: then another fetch is needed.
func (e *Engine) wait(ctx context.Context, q question, since time.Time) (Resolution, error) {
	asked := time.Now()
	sf := e.enter(q.key)
	defer e.leave(sf)
	if res, ok := e.entered(sf, q, asked, since); ok {
		return res, nil
	}
	longest := 2*e.robots.Timeout + waitMargin
	if e.config.Shared {
		longest += permitMargin
	}
	late := time.NewTimer(longest)
	defer late.Stop()
	for {
		job, own := e.join(sf, q, since)
		select {
		case <-job.done:
		case <-late.C:
			return e.tooLate(q, sf, asked, since), nil
		case <-ctx.Done():
			return Resolution{}, context.Cause(ctx)
		}
		if job.err != nil {
			return Resolution{}, job.err
		}
		now := time.Now()
		s := q.settings.current(&job.entry.Record, q.slot, now, asked)
		if own && (s == nil || s.Fetched.Before(since)) {
			s = job.answer
		}
		if s == nil || s.Fetched.Before(since) {
			continue
		}
		res, ok := e.judge(q, job.entry, s, now)
		if !ok {
			gone := job.entry.Copies[q.slot]
			e.forgetCopy(sf, q.slot, gone)
			if gone != nil { // a shared store may still name it: the same copy is no answer
				since = later(since, gone.Fetched)
			}
			continue
		}
		e.renew(q, job.entry, s, now)
		res.From = job.layer
		return res, nil
	}
}

// entered returns what an answer that enter has found means to a crawler, if no fetch is needed.
func (e *Engine) entered(sf *scopeFetches, q question, asked, since time.Time) (res Resolution, ok bool) {
	e.mu.Lock()
	known, closed := sf.entry, e.ctx.Err() != nil
	e.mu.Unlock()
	s := q.settings.current(&known.Record, q.slot, asked, asked)
	if closed || s == nil || !s.Fetched.After(since) {
		return res, false
	}
	if res, ok = e.judge(q, known, s, asked); ok {
		e.renew(q, known, s, asked)
		res.From = InStore
	}
	return res, ok
}

// tooLate is the result for a request that can't wait any longer: what other gates know by now, since this one
// may have been stopped while it waited, or else that the origin is unreachable.
func (e *Engine) tooLate(q question, sf *scopeFetches, asked, since time.Time) Resolution {
	if e.config.Shared {
		e.learn(sf)
	}
	e.mu.Lock()
	known := sf.entry
	e.mu.Unlock()
	now := time.Now()
	if s := q.settings.current(&known.Record, q.slot, now, asked); s != nil && !s.Fetched.Before(since) {
		if res, ok := e.judge(q, known, s, now); ok {
			res.From = InStore
			return res
		}
	}
	return e.unanswered(q, known, "many crawlers ask for it, and the origin is slow to answer each of them")
}

// unanswered is the result for a request to which the origin's answer is not known: it is unreachable.
func (e *Engine) unanswered(q question, known *entry, why string) Resolution {
	now := time.Now()
	s := &Snapshot{URL: ParseKey(q.key).url(), Error: why, Fetched: now, Failures: 1, Since: now, NoSlot: true}
	res, ok := e.judge(q, known, s, now)
	if !ok {
		res = q.settings.ResolveAt(s, nil, now)
	}
	res.From = Fetched
	return res
}

// judge returns what an answer means to a crawler, with the compiled rules if some are obeyed.
// ok is false if they are of a copy that binds this crawler only, and are gone.
func (e *Engine) judge(q question, known *entry, s *Snapshot, now time.Time) (res Resolution, ok bool) {
	res = q.settings.ResolveAt(s, known.copyFor(q.slot), now)
	if res.State != Fresh && res.State != Stale {
		return res, true
	}
	obeyed := res.Snapshot
	if obeyed == known.Good {
		res.setFile(known.file)
		return res, true
	}
	own := e.copyEntry(q.key, q.slot, obeyed)
	if own == nil {
		return res, false
	}
	// The evidence is the copy with its rules, which a lower Robots.MaxBytes may have cut.
	for _, s := range []**Snapshot{&res.Snapshot, &res.Answer, &res.Good} {
		if *s == obeyed {
			*s = own.Good
		}
	}
	res.setFile(own.file)
	return res, true
}

// copyEntry returns the copy that binds the crawler with a slot only, with its rules. It returns nil if the
// rules are gone: they are in a record of their own, which the store may have forgotten.
func (e *Engine) copyEntry(key, slot string, s *Snapshot) *entry {
	key = copyKey(key, slot)
	has := func(known *entry) bool {
		return known != nil && known.Good != nil && known.Good.Fetched.Equal(s.Fetched)
	}
	known := e.cache.get(key)
	if has(known) {
		return known
	}
	sf := e.enter(key) // so that it is loaded once for all requests that wait for it
	defer e.leave(sf)
	if known != nil { // another gate may have saved a newer one
		e.learn(sf)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if !has(sf.entry) {
		return nil
	}
	return sf.entry
}

// recovered logs a panic during a fetch, which would end the process, and returns an error in its place. It is
// for defer.
func (s *shared) recovered(url string, err *error) {
	if p := recover(); p != nil {
		s.log.Error("panic while fetching a file; please report it", "url", url, "panic", p, "stack", string(debug.Stack()))
		*err = fmt.Errorf("fetch %s: internal error", url)
	}
}

func shutDown(s Scope) error {
	return fmt.Errorf("fetch %s: the gate is shutting down: %w", s.url(), context.Canceled)
}
