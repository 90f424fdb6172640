package policy

import (
	"cmp"
	"context"
	"time"
)

// Refresh fetches an origin's robots.txt now, whatever is known of it. The other crawlers fetch anew
// at their next request, and so do all for tdmrep.json.
func (e *Engine) Refresh(ctx context.Context, r Request) (Resolution, error) {
	asked := time.Now()
	res, err := e.wait(ctx, e.question(r), asked)
	if err != nil {
		return res, err
	}
	for _, crawlers := range []bool{false, true} {
		e.outdate(Scope{Origin: r.Target.Origin(), Crawlers: crawlers}.Key(), asked)
		if e.config.Usage.TDMRep {
			e.outdate(Scope{Origin: r.Target.Origin(), TDMRep: true, Crawlers: crawlers}.Key(), asked)
		}
	}
	return res, nil
}

// outdate marks the answers under a key that were fetched before a time as no longer valid. With a shared
// store it does so without an answer too: another gate may know one.
func (e *Engine) outdate(key string, asked time.Time) {
	sf := e.enter(key)
	defer e.leave(sf)
	e.mu.Lock()
	defer e.mu.Unlock()
	if !sf.entry.Empty() || e.config.Shared {
		next := &entry{Record: sf.entry.Record, file: sf.entry.file}
		next.Refreshed = asked
		sf.entry = next
		e.cache.put(key, next, nil)
	}
}

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

// Reread makes the Engine read each record from the store again when a request needs it, in place of the one
// in memory: other processes may have saved records of which the Engine was not told with [Engine.Learn].
func (e *Engine) Reread() { e.cache.entries.Clear() }

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
	e.settings(sf.scope).vacate(&rec, sf.jobs, time.Now())
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

// Peek returns what an origin's robots.txt means now to the crawler of a request, as far as it is
// known, without a fetch. due says that a request would start one. ok is false if nothing is
// known that is for this crawler.
func (e *Engine) Peek(ctx context.Context, r Request) (res Resolution, due, ok bool) {
	q := e.question(r)
	known := e.cache.find(ctx, q.key)
	if known == nil {
		return Resolution{}, false, false
	}
	now := time.Now()
	s := q.settings.current(&known.Record, q.slot, now, now)
	if s == nil {
		s, due = known.newest(q.slot), true
	}
	if s == nil {
		return Resolution{}, false, false
	}
	res, ok = e.judge(q, known, s, now)
	return res, due, ok
}

// question asks for what the crawler of a request obeys.
func (e *Engine) question(r Request) question {
	r.Crawler = cmp.Or(r.Crawler, e.config.Crawlers.Default)
	return e.obeyed(&r, r.Crawler.Obeys(r.UserAgent))
}

// obeyed asks for what a crawler obeys with these product tokens.
func (e *Engine) obeyed(r *Request, tokens []string) question {
	return e.ask(Scope{Origin: r.Target.Origin()}, r.Crawler, tokens)
}

// ask asks for a file of an origin, on behalf of a crawler with these product tokens.
func (e *Engine) ask(of Scope, k *Crawler, tokens []string) question {
	of.Crawlers = k.configured
	return question{e.settings(of), of.Key(), Slot(k.entry(), tokens), e.agentFor(k), cmp.Or(e.wrapped[k], e.fetcher.transport)}
}

// agentFor returns the User-Agent of fetches on behalf of a crawler: robots.user_agent, or else the crawler's first
// product token (RFC 9309, 2.2.1), or else the program's name. It has no text of a client: that could make an origin's
// firewall answer 403, which lifts the rules (RFC 9309, 2.3.1.3).
func (e *Engine) agentFor(k *Crawler) string {
	switch {
	case e.robots.UserAgent != "":
		return e.robots.UserAgent
	case len(k.Tokens) > 0: // a User-Agent that the crawler is configured to send would go before its token
		return k.Tokens[0]
	}
	return e.config.Agent
}

// Known returns the record of a scope, without a fetch.
func (e *Engine) Known(ctx context.Context, s Scope) (rec Record, ok bool) {
	known := e.cache.find(ctx, s.Key())
	if known == nil || known.Empty() {
		return Record{}, false
	}
	return known.Record, true
}

// Origins returns origins that the [Store] has, as its method of that name does. The store has an
// origin soon after the first answer to a fetch.
func (e *Engine) Origins(ctx context.Context, contains, from string, limit int) (origins []string, next string, err error) {
	return e.cache.store.Origins(ctx, contains, from, limit)
}

// Outages returns origins with a robots.txt that can't be fetched, the last that was tried
// first. Only the last 50 are kept.
func (e *Engine) Outages() []Outage { return e.cache.outages.list(e.robots, time.Now()) }

// Forbidden returns crawlers that are answered 401 or 403 for a robots.txt of which there is a copy, the last that
// was fetched first. Only the last 50 are kept.
func (e *Engine) Forbidden() []Forbidden { return e.cache.outages.forbidden(e.robots, time.Now()) }

// A Size is what a cache holds in memory.
type Size struct {
	Entries int
	Bytes   int64
	Bound   int64 // on Bytes
}

// Cached returns the size of the compiled rules in memory.
func (e *Engine) Cached() (s Size) {
	s.Entries, s.Bytes, s.Bound = e.cache.entries.Usage()
	return s
}
