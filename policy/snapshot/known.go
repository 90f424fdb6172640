package snapshot

import (
	"context"
	"time"

	"robotsgate/internal/memcache"
)

// Refresh fetches the file now, whatever is known of it. The other crawlers fetch anew
// at their next request, and with tdmrep they do so for the origin's tdmrep.json, too.
func (r *Resolver) Refresh(ctx context.Context, q Query, tdmrep bool) (Resolution, error) {
	asked := time.Now()
	res, err := r.wait(ctx, r.question(q), asked)
	if err != nil {
		return res, err
	}
	for _, crawlers := range []bool{false, true} {
		r.outdate(Scope{Origin: q.Scope.Origin, Crawlers: crawlers}.Key(), asked)
		if tdmrep {
			r.outdate(Scope{Origin: q.Scope.Origin, TDMRep: true, Crawlers: crawlers}.Key(), asked)
		}
	}
	return res, nil
}

// outdate marks the answers under a key that were fetched before a time as no longer valid. With a shared
// store it does so without an answer too: another gate may know one.
func (r *Resolver) outdate(key string, asked time.Time) {
	sf := r.enter(key)
	defer r.leave(sf)
	r.mu.Lock()
	defer r.mu.Unlock()
	if !sf.entry.Empty() || r.config.Shared {
		next := &entry{Record: sf.entry.Record, file: sf.entry.file}
		next.Refreshed = asked
		sf.entry = next
		r.cache.put(key, next, nil)
	}
}

// Learn takes over what other processes have saved under a key, which is that of a [Scope], if the
// key is in memory. Otherwise it will be read from the store when a request needs it.
func (r *Resolver) Learn(key string) {
	if r.cache.get(key) == nil {
		return
	}
	r.mu.Lock()
	if r.ctx.Err() != nil {
		r.mu.Unlock()
		return
	}
	r.running.Add(1)
	r.mu.Unlock()
	defer r.running.Done()
	sf := r.enter(key)
	defer r.leave(sf)
	r.learn(sf)
}

// Reread makes r read each record from the store again when a request needs it, in place of the one
// in memory: other processes may have saved records of which r was not told with [Resolver.Learn].
func (r *Resolver) Reread() { r.cache.entries.Clear() }

// learn merges what the store has with what is known in memory.
func (r *Resolver) learn(sf *scopeFetches) {
	var saved *entry
	r.guard(sf.key, 0, func(ctx context.Context) { saved = r.cache.read(ctx, sf.key) })
	if saved == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	known := sf.entry
	rec, learned := Merge(known.Record, saved.Record)
	if !learned {
		return
	}
	r.settingsFor(sf.scope).vacate(&rec, sf.jobs, time.Now())
	next := &entry{Record: rec}
	switch rec.Good {
	case nil:
	case known.Good:
		next.file = known.file
	default:
		next.file = saved.file
	}
	sf.entry = next
	if saved.Foreign {
		r.cache.put(sf.key, next, nil)
	} else {
		r.cache.keep(sf.key, next)
	}
}

// Peek returns what the file means now to the crawler, as far as it is
// known, without a fetch. due says that Resolve would start one. ok is false if nothing is
// known that is for this crawler.
func (r *Resolver) Peek(ctx context.Context, query Query) (res Resolution, due, ok bool) {
	q := r.question(query)
	known := r.cache.find(ctx, q.key)
	if known == nil {
		return Resolution{}, false, false
	}
	now := time.Now()
	s := q.settings.current(&known.Record, q.Slot, now, now)
	if s == nil {
		s, due = known.newest(q.Slot), true
	}
	if s == nil {
		return Resolution{}, false, false
	}
	res, ok = r.judge(q, known, s, now)
	return res, due, ok
}

// Known returns the record of a scope, without a fetch.
func (r *Resolver) Known(ctx context.Context, s Scope) (rec Record, ok bool) {
	known := r.cache.find(ctx, s.Key())
	if known == nil || known.Empty() {
		return Record{}, false
	}
	return known.Record, true
}

// Origins returns origins that the [Store] has, as its method of that name does. The store has an
// origin soon after the first answer to a fetch.
func (r *Resolver) Origins(ctx context.Context, contains, from string, limit int) (origins []string, next string, err error) {
	return r.cache.store.Origins(ctx, contains, from, limit)
}

// Outages returns origins with a robots.txt that can't be fetched, the last that was tried
// first. Only the last 50 are kept.
func (r *Resolver) Outages() []Outage { return r.cache.outages.list(r.settings, time.Now()) }

// Forbidden returns crawlers that are answered 401 or 403 for a robots.txt of which there is a copy, the last that
// was fetched first. Only the last 50 are kept.
func (r *Resolver) Forbidden() []Forbidden { return r.cache.outages.forbidden(r.settings, time.Now()) }

// Cached returns the size of the compiled rules in memory.
func (r *Resolver) Cached() memcache.Size { return r.cache.entries.Size() }
