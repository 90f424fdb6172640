package snapshot

import (
	"cmp"
	"context"
	"time"

	"golang.org/x/sync/singleflight"
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
// valid: for two fetches at most, each of Settings.Timeout at most, since another gate may fetch first.
//
// The error is that of ctx, that r is closed, ErrBusy, or one of the Transport because of which the origin was not asked.
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
	return r.unanswered(q, shortened(err.Error())), nil
}

// inMemory returns what an answer in memory means to a crawler, if it is still valid.
func (r *Resolver) inMemory(q question) (res Resolution, ok bool) {
	known, now := r.get(q.key), time.Now()
	if known == nil {
		return Resolution{}, false
	}
	s := q.settings.current(&known.Set, now, now)
	if s == nil {
		return Resolution{}, false
	}
	r.renew(q, known, s, now)
	res = r.meaning(q, known, s, now)
	res.From = InMemory
	return res, true
}

// renew starts an update in the background if an answer is about to end.
func (r *Resolver) renew(q question, known *entry, s *Snapshot, now time.Time) {
	if q.settings.due(s, now) && known.renewing.CompareAndSwap(false, true) {
		r.update(q, s.Fetched)
	}
}

// wait waits for updates of a file until one has brought an answer that was not fetched before since. The first
// may have begun before a refresh was asked for: then another one is needed.
func (r *Resolver) wait(ctx context.Context, q question, since time.Time) (Resolution, error) {
	asked := time.Now()
	for {
		var result singleflight.Result
		select {
		case result = <-r.update(q, since):
		case <-ctx.Done():
			return Resolution{}, context.Cause(ctx)
		}
		if result.Err != nil {
			return Resolution{}, result.Err
		}
		u, now := result.Val.(*update), time.Now()
		s := q.settings.current(&u.Set, now, asked)
		if s == nil || s.Fetched.Before(since) {
			s = u.answer
		}
		if s.Fetched.Before(since) {
			continue
		}
		r.renew(q, u.entry, s, now)
		res := r.meaning(q, u.entry, s, now)
		res.From = u.from
		return res, nil
	}
}

// unanswered is the result for a request to which the origin's answer is not known: it is unreachable.
func (r *Resolver) unanswered(q question, why string) Resolution {
	now, known := time.Now(), cmp.Or(r.get(q.key), &entry{})
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
	known := r.find(ctx, q.key)
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
