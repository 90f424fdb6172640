package policy

import (
	"context"
	"time"
)

// Learn takes over what other processes have saved under a key, which is that of a [Scope], if the
// key is in memory. Otherwise it will be read from the store when a request needs it.
func (e *Engine) Learn(key string) {
	if e.cache.get(key) == nil {
		return
	}
	e.mu.Lock()
	if e.ctx.Err() != nil {
		e.mu.Unlock()
		return
	}
	e.running.Add(1)
	e.mu.Unlock()
	defer e.running.Done()
	sf := e.enter(key)
	defer e.leave(sf)
	e.learn(sf)
}

// learn merges what the store has with what is known in memory.
func (e *Engine) learn(sf *scopeFetches) {
	var saved *entry
	e.guard(sf.key, 0, func(ctx context.Context) { saved = e.cache.read(ctx, sf.key) })
	if saved == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	known := sf.entry
	rec, learned := Merge(known.Record, saved.Record)
	if !learned {
		return
	}
	e.robots.vacate(&rec, sf.jobs, time.Now())
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
		e.cache.put(sf.key, next, nil)
	} else {
		e.cache.keep(sf.key, next)
	}
}
