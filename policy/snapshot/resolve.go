package snapshot

import (
	"cmp"
	"context"
	"time"
)

// A question is a [Query] with what it takes to answer it.
type question struct {
	Query
	settings *Settings // by which answers are read
	key      string    // of the set
}

func (r *Resolver) question(q Query) question {
	q.UserAgent = cmp.Or(r.settings.UserAgent, q.UserAgent)
	q.Scope.Asker = askerOf(q.UserAgent, q.KeyID)
	q.Transport = cmp.Or(q.Transport, r.config.Transport)
	return question{q, r.settingsFor(q.Scope), q.Scope.Key()}
}

// Resolve returns what an origin's file means to a crawler. It waits for a fetch only if no known answer is still
// valid: for two fetches at most, each of Settings.Timeout at most, since another gate may fetch first. After that the
// origin counts as unreachable.
//
// The error is that of ctx, that r is closed, ErrBusy, ErrExhausted, ErrUnsigned, ErrProhibited or ErrNoHost.
func (r *Resolver) Resolve(ctx context.Context, query Query) (Resolution, error) {
	q := r.question(query)
	if res, ok := r.inMemory(q); ok {
		return res, nil
	}
	return r.wait(ctx, q, time.Time{})
}

// ResolveWithinTimeout is Resolve for a file that a request can do without. It waits for Settings.Timeout at most, and
// after any failure the origin counts as unreachable. The only error is that of ctx.
func (r *Resolver) ResolveWithinTimeout(ctx context.Context, query Query) (Resolution, error) {
	q := r.question(query)
	if res, ok := r.inMemory(q); ok {
		return res, nil
	}
	limited, cancel := context.WithTimeout(ctx, r.settings.Timeout)
	defer cancel()
	res, err := r.wait(limited, q, time.Time{})
	switch {
	case err == nil:
		return res, nil
	case ctx.Err() != nil:
		return Resolution{}, context.Cause(ctx)
	}
	return r.unanswered(q, cmp.Or(r.cache.get(q.key), &entry{}), shortened(err.Error())), nil
}

// inMemory returns what an answer in memory means to a crawler, if it is still valid.
func (r *Resolver) inMemory(q question) (res Resolution, ok bool) {
	known := r.cache.get(q.key)
	if known == nil {
		return Resolution{}, false
	}
	now := time.Now()
	if res, ok = r.valid(q, known, InMemory, now, now, time.Time{}); ok {
		r.renew(q, known, res.Answer, now)
	}
	return res, ok
}

// valid returns what a known answer means to a crawler, if one is valid that was not fetched before since.
func (r *Resolver) valid(q question, known *entry, from Layer, now, asked, since time.Time) (res Resolution, ok bool) {
	s := q.settings.current(&known.Set, now, asked)
	if s == nil || s.Fetched.Before(since) {
		return Resolution{}, false
	}
	res = r.meaning(q, known, s, now)
	res.From = from
	return res, true
}

// renew starts a fetch in the background if an answer is about to end.
func (r *Resolver) renew(q question, known *entry, s *Snapshot, now time.Time) {
	if !q.settings.due(s, now) || !known.renewing.CompareAndSwap(false, true) {
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

const (
	// waitMargin is how much longer a request waits than two fetches may take: one that was under way, or by
	// another gate, and its own.
	waitMargin = time.Second
	// permitMargin is how much longer a gate waits for the fetch of another one than that may take.
	// The other one may have been killed, and its permission has to end, before a third one fetches.
	permitMargin = 4 * time.Second
)

// wait joins fetches of a file until one has brought an answer that was not fetched before since. The first
// may have begun before a refresh was asked for: then another fetch is needed.
func (r *Resolver) wait(ctx context.Context, q question, since time.Time) (Resolution, error) {
	asked := time.Now()
	sf := r.enter(q.key)
	defer r.leave(sf)
	r.mu.Lock()
	known, closed := sf.entry, r.ctx.Err() != nil
	r.mu.Unlock()
	if !closed {
		if res, ok := r.valid(q, known, InStore, asked, asked, since.Add(1)); ok {
			r.renew(q, known, res.Answer, asked)
			return res, nil
		}
	}
	longest := 2*r.settings.Timeout + waitMargin
	if r.config.Shared {
		longest += permitMargin
	}
	late := time.NewTimer(longest)
	defer late.Stop()
	for {
		job := r.join(sf, q, since)
		select {
		case <-job.done:
		case <-late.C:
			return r.tooLate(q, sf, asked, since), nil
		case <-ctx.Done():
			return Resolution{}, context.Cause(ctx)
		}
		if job.err != nil {
			return Resolution{}, job.err
		}
		now := time.Now()
		s := q.settings.current(&job.entry.Set, now, asked)
		if s == nil || s.Fetched.Before(since) {
			s = job.answer
		}
		if s.Fetched.Before(since) {
			continue
		}
		res := r.meaning(q, job.entry, s, now)
		r.renew(q, job.entry, s, now)
		res.From = job.layer
		return res, nil
	}
}

// tooLate is the result for a request that can't wait any longer: what other gates know by now, since this one
// may have been stopped while it waited, or else that the origin is unreachable.
func (r *Resolver) tooLate(q question, sf *scopeFetches, asked, since time.Time) Resolution {
	if r.config.Shared {
		r.learn(sf)
	}
	r.mu.Lock()
	known := sf.entry
	r.mu.Unlock()
	if res, ok := r.valid(q, known, InStore, time.Now(), asked, since); ok {
		return res
	}
	return r.unanswered(q, known, "its fetch, by this gate or another, takes too long")
}

// unanswered is the result for a request to which the origin's answer is not known: it is unreachable.
func (r *Resolver) unanswered(q question, known *entry, why string) Resolution {
	now := time.Now()
	res := r.meaning(q, known, &Snapshot{URL: q.Scope.URL(), Error: why, Fetched: now, Failures: 1, Since: now, Substitute: true}, now)
	res.From = Fetched
	return res
}

// meaning returns what an answer means to a crawler, with the compiled rules if some are obeyed.
func (r *Resolver) meaning(q question, known *entry, s *Snapshot, now time.Time) Resolution {
	res := q.settings.ResolveAt(s, known.Good, now)
	if res.State == Fresh || res.State == Stale {
		res.setFile(known.file)
	}
	return res
}

// Peek returns what the file means now to the crawler, as far as it is
// known, without a fetch. due says that Resolve would start one. ok is false if nothing is
// known.
func (r *Resolver) Peek(ctx context.Context, query Query) (res Resolution, due, ok bool) {
	q := r.question(query)
	known := r.cache.find(ctx, q.key)
	if known == nil {
		return Resolution{}, false, false
	}
	now := time.Now()
	s := q.settings.current(&known.Set, now, now)
	if s == nil {
		s, due = known.Last, true
	}
	if s == nil {
		return Resolution{}, false, false
	}
	return r.meaning(q, known, s, now), due, true
}
