package pace

import (
	"cmp"
	"slices"
	"time"
)

// A Turn is a request that may start, or has.
type Turn struct {
	Held     time.Duration // the time that it has waited
	By       Source        // what it has waited for
	Distance Distance      // that it has kept
	Limit    Limit         // that it counts for, with what is left of it; zero: none

	pacer   *Pacer
	request Request
	start   time.Duration
}

// advance starts a request that may start now. For others it returns when it is to be called again.
func (p *Pacer) advance(w *waiter) (turn *Turn, until time.Duration, err error) {
	if w.queued {
		if until, err = p.awaitTurn(w); until != 0 || err != nil {
			return nil, until, err
		}
	}
	if !p.admit(&w.request) {
		if p.origins[w.request.Origin] == nil { // there is no place for the pause
			return nil, 0, w.request.noPlace(ByPause)
		}
		if !w.queued {
			err = p.enter(w)
		}
		return nil, p.now(), err
	}
	limit, err := p.spend(&w.request, false)
	if err != nil {
		return nil, 0, err
	}
	turn = p.start(w)
	turn.Limit = limit
	return turn, 0, nil
}

// awaitTurn returns until when a request that is queued waits for its turn and its interval; 0: no longer. The crawler
// that has the turn keeps it until its interval has passed, so that a short interval of another crawler can't starve a
// long one.
func (p *Pacer) awaitTurn(w *waiter) (until time.Duration, err error) {
	o, r, now := w.origin, &w.request, p.now()
	if o.turn == w {
		if pause := o.pause(r.Token); pause.Until > now {
			p.release(w)
			if w.by = ByPause; pause.Until > w.deadline && !pause.First {
				return 0, r.tooLate(pause.Until-now, ByPause)
			}
		}
	}
	if o.turn != w {
		if now < w.deadline {
			w.by = cmp.Or(w.by, ByInterval)
			return w.deadline, nil
		}
		p.leave(w)
		wait, by, err := p.foresee(w)
		if err == nil {
			err = r.tooLate(wait, cmp.Or(by, w.by, ByInterval))
		}
		return 0, err
	}
	at := o.due(r)
	if err := p.spent(r, max(at-now, 0)); err != nil {
		return 0, err
	}
	if p.shares(r) {
		if at, err = p.reserve(w); err != nil {
			return 0, err
		}
	}
	switch now = p.now(); {
	case at <= now:
		return 0, nil
	case w.slot == nil && at > w.deadline:
		return 0, r.tooLate(at-now, ByInterval)
	}
	w.by = cmp.Or(w.by, ByInterval)
	return at, nil
}

// start starts a request.
func (p *Pacer) start(w *waiter) *Turn {
	r, now := w.request, p.now()
	t := &Turn{By: w.by, Distance: r.distance, pacer: p, request: r, start: now}
	if w.by != "" {
		t.Held = now - w.arrived
	}
	if w.origin == nil && r.paced() { // a request of report mode
		w.origin = p.remember(r.Origin)
	}
	o := w.origin
	if o == nil {
		return t
	}
	o.last = now
	o.memory = max(o.memory, r.distance.Interval, r.memory)
	if w.queued {
		w.slot = nil
		l := o.line(r.Crawler) // the other crawlers have their turns before its next one
		o.lines = append(slices.DeleteFunc(o.lines, func(other *line) bool { return other == l }), l)
	}
	return t
}

// due returns when a request may start, if it is the next.
func (o *origin) due(r *Request) time.Duration {
	if r.distance.Interval == 0 {
		return never
	}
	return o.before(r) + r.distance.Interval
}

// before returns the last start that counts for a request.
func (o *origin) before(r *Request) time.Duration {
	if r.Fetched {
		return o.last
	}
	return max(o.last, o.fetched)
}
