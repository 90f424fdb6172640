package snapshot

import (
	"cmp"
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
	if !r.begin() {
		return
	}
	defer r.running.Done()
	if r.get(key) == nil {
		r.learn(key)
	}
	r.mu.Lock()
	known := cmp.Or(r.get(key), &entry{key: key})
	if known.Empty() && !r.config.Shared {
		r.mu.Unlock()
		return
	}
	set := known.Set
	set.Refreshed = asked
	next := known.with(set, nil)
	r.put(next)
	r.mu.Unlock()
	r.save(next)
}

// Learn takes over what other processes have saved under a key, which is that of a [Scope], if the
// key is in memory. Otherwise it will be read from the store when a request needs it.
func (r *Resolver) Learn(key string) {
	if r.get(key) != nil && r.begin() {
		r.learn(key)
		r.running.Done()
	}
}

// Reread makes r read each set from the store again when a request needs it, in place of the one
// in memory: other processes may have saved sets of which r was not told with [Resolver.Learn].
func (r *Resolver) Reread() { r.entries.Clear() }
