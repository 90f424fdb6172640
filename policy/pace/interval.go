package pace

import "time"

// awaitTurn delays a request to its interval after the start before, in turn with others. [Pacer.pump] gives the turns;
// gates that share a [Clock] reserve each start there.
func (p *Pacer) awaitTurn(a *arrival) {
	if a.origin == nil {
		return
	}
	a.at, a.by = a.origin.turn(a.request, a.now), ByInterval
	a.waits = a.at > a.now || a.origin.waiting > 0
	a.refused = a.request.distance.Interval > p.settings.MaxDelay
}

// turn returns when the turn of a request would come if it was queued now, or has been, and nothing else
// happened. A request that arrives later, or a pause, may change it.
func (o *origin) turn(r *Request, now time.Duration) (at time.Duration) {
	before, mine := 0, false // requests of the same crawler, and whether its line was passed
	if l := o.line(r.Crawler); l != nil {
		before = len(l.waiters)
	}
	at = now
	factor := 1 // of intervals
	if s := o.shared; s != nil && o.waiting > 0 {
		factor = s.factor
		if s.slot != nil {
			at = max(at, s.slot.at)
		}
	}
	first := true
	pass := func(r Request) {
		r.distance.Interval = Times(r.distance.Interval, factor)
		if due := o.due(r); first {
			at = max(at, due)
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
		if l.crawler == r.Crawler {
			n, mine = before, true
		}
		for _, w := range l.waiters[:min(n, len(l.waiters))] {
			if o.paused(w.request.Token) <= now {
				pass(w.request)
			}
		}
	}
	pass(*r)
	return at
}
