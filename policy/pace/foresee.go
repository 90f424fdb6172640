package pace

import (
	"cmp"
	"slices"
	"time"
)

// foresee returns how long a request that is not queued would wait, and for what, if nothing else happened; 0: it may
// start at once. It returns an error if the request may not wait for so long.
func (p *Pacer) foresee(w *waiter) (wait time.Duration, by Source, err error) {
	now, r, o := p.now(), &w.request, w.origin
	at := now
	if o != nil {
		if at = p.foreseeTurn(w, now); at > now || o.waiting > 0 {
			by = ByInterval
		}
		switch pause := o.pause(r.Token); {
		case pause.Until > now && pause.First: // it may end at any moment
			by = ByPause
		case pause.Until > at:
			at, by = pause.Until, ByPause
		}
	}
	if err := p.spent(r, at-now); err != nil {
		return 0, ByBudget, err
	}
	if by == "" {
		return 0, "", nil
	}
	if late := at > w.deadline; late || o.waiting >= p.settings.MaxQueue {
		e := r.tooLate(at-now, by)
		e.Full = !late
		return 0, by, e
	}
	return max(at-now, 1), by, nil
}

// foreseeTurn returns when the turn of a request would come. A request that arrives later, or a pause, may change it.
func (p *Pacer) foreseeTurn(w *waiter, now time.Duration) (at time.Duration) {
	o := w.origin
	before, mine := 0, false // requests of the same crawler, and whether its line was passed
	if l := o.line(w.request.Crawler); l != nil {
		before = len(l.waiters)
	}
	at = now
	factor := 1 // of intervals
	if o.waiting > 0 {
		factor = p.factor
	}
	if o.turn != nil && o.turn.slot != nil {
		at = max(at, o.turn.slot.at)
	}
	first := true
	pass := func(r Request) {
		r.distance.Interval = Times(r.distance.Interval, factor)
		if first {
			at = max(at, o.due(&r))
		} else {
			at += r.distance.Interval
		}
		first = false
	}
	for _, l := range o.lines {
		n := before + 1
		if mine {
			n = before
		}
		if l.crawler == w.request.Crawler {
			n, mine = before, true
		}
		for _, other := range l.waiters[:min(n, len(l.waiters))] {
			if o.pause(other.request.Token).Until <= now {
				pass(other.request)
			}
		}
	}
	pass(w.request)
	return at
}

// A Queue is an origin for which requests wait.
type Queue struct {
	Origin  string  `json:"origin"`
	Waiting int     `json:"waiting"`
	Longest float64 `json:"longest"` // seconds that one of them has waited
}

// Waiting returns the number of requests that wait.
func (p *Pacer) Waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waiting
}

// Queues returns the origins for which requests wait, those with the most first.
func (p *Pacer) Queues() (all []Queue) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	for _, o := range p.origins {
		if o.waiting == 0 {
			continue
		}
		q := Queue{Origin: o.name, Waiting: o.waiting}
		for _, l := range o.lines {
			q.Longest = max(q.Longest, (now - l.waiters[0].arrived).Seconds())
		}
		all = append(all, q)
	}
	slices.SortFunc(all, func(a, b Queue) int {
		return cmp.Or(cmp.Compare(b.Waiting, a.Waiting), cmp.Compare(a.Origin, b.Origin))
	})
	return all
}
