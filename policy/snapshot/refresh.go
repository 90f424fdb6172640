package snapshot

import (
	"context"
	"time"
)

// Refresh fetches the file now, whatever is known of it. With tdmrep, crawlers with the same asker fetch the origin's
// tdmrep.json anew at their next request. Other askers have answers of their own.
func (r *Resolver) Refresh(ctx context.Context, query Query, tdmrep bool) (Resolution, error) {
	asked, q := time.Now(), r.question(query)
	res, err := r.wait(ctx, q, asked)
	if err != nil {
		return res, err
	}
	r.Outdate(query, tdmrep, asked)
	return res, nil
}

// Outdate makes crawlers with the asker of a query fetch its file anew at their next request, and with tdmrep the origin's
// tdmrep.json, if it was fetched before a time.
func (r *Resolver) Outdate(query Query, tdmrep bool, asked time.Time) {
	q := r.question(query)
	r.outdate(q.key, asked)
	if tdmrep {
		q.Scope.TDMRep = true
		r.outdate(q.Scope.Key(), asked)
	}
}

// outdate marks the answers under a key that were fetched before a time as no longer valid. With a shared
// store it does so without an answer too: another gate may know one.
func (r *Resolver) outdate(key string, asked time.Time) {
	sf := r.enter(key)
	defer r.leave(sf)
	r.mu.Lock()
	defer r.mu.Unlock()
	if !sf.entry.Empty() || r.config.Shared {
		next := &entry{Set: sf.entry.Set, file: sf.entry.file}
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

// Reread makes r read each set from the store again when a request needs it, in place of the one
// in memory: other processes may have saved sets of which r was not told with [Resolver.Learn].
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
	set, learned := Merge(known.Set, saved.Set)
	if !learned {
		return
	}
	next := &entry{Set: set}
	switch set.Good {
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
