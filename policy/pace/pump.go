package pace

import (
	"cmp"
	"time"
)

// pump starts the requests of an origin that are due, refuses those that have waited for too long,
// and sets the timer for the next ones. If a start must be reserved first, it returns the request for
// which the caller is to call ask.
func (p *Pacer) pump(o *origin, now time.Duration) (ask *waiter) {
	for o.waiting > 0 {
		w, at := o.next(now)
		shared, reserve := w != nil && p.shares(w.request), false
		if shared {
			at, reserve = o.dueShared(w.request, now)
		}
		if w != nil && at <= now {
			if shared {
				o.shared.slot = nil
			}
			p.remove(w)
			o.passTurn(w.request.Crawler)
			turn := p.start(o, w.request, now)
			if turn.By = w.by; w.by != "" {
				turn.Held = now - w.arrived
			}
			w.end(turn, nil)
			continue
		}
		var asking *waiter
		switch {
		case w == nil:
			p.giveBack(o)
		case shared && at == forever:
			asking = w
		case shared && o.shared.failed == now && at-now > p.longest(w, now):
			p.refuse(w, at-now, ByInterval)
			continue
		default:
			w.by = cmp.Or(w.by, ByInterval)
		}
		deadline, late := o.earliest(asking)
		if deadline <= now {
			p.remove(late)
			late.end(nil, p.foresee(o, &late.request, now, forever).tooLate(false))
			continue
		}
		o.wake(min(at, deadline)-now, func() { p.due(o) })
		if reserve {
			return asking
		}
		return nil
	}
	p.giveBack(o)
	o.stop()
	delete(p.queued, o)
	return nil
}

// pumpSoon is pump for callers that can't wait for the clock: the timer's goroutine does.
func (p *Pacer) pumpSoon(o *origin, now time.Duration) {
	if p.pump(o, now) != nil {
		o.wake(0, func() { p.due(o) })
	}
}

// due is called by an origin's timer.
func (p *Pacer) due(o *origin) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w := p.pump(o, p.now()); w != nil {
		p.ask(o, w)
	}
}
