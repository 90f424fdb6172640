package pace

import (
	"cmp"
	"errors"
	"slices"
	"time"
)

// A Clock has the starts that several gates share, and the pauses, so that the rules hold over all of
// them. Its methods are safe for concurrent use. A call takes a bounded time. While the clock can't be used it
// returns an error at once.
type Clock interface {
	// Reserve reserves the next start of any gate with the reservation's key, as [Starts.Reserve] does. Starts
	// are given in order of asking. It takes one round trip at most.
	Reserve(Reservation) (Grant, error)
	// Alone returns among how many gates a limit is divided while Reserve fails: the number seen last, at
	// least 1. Intervals are multiplied by it.
	Alone() int
	// Pause changes the pause of a product token at an origin. If another gate changes it meanwhile, change is called
	// again, with that.
	Pause(origin, token string, change PauseChange) error
}

// A PauseChange changes a pause: zero if none is known. It returns for how long the Clock keeps the pause; 0: nothing
// has changed.
type PauseChange func(p *Pause, now time.Duration) (keep time.Duration)

// A slot is a start that was reserved.
type slot struct {
	at     time.Duration
	start  time.Duration // by the clock
	late   time.Duration // from then on other gates may start by it, as when this gate was stopped meanwhile
	losses int           // of the clock, before
}

// shares reports whether a request starts by the shared clock.
func (p *Pacer) shares(r *Request) bool { return p.clock != nil && r.paced() }

// reserve returns when a request that has the turn may start by the clock, after the interval to this gate's starts.
// While the clock can't be used, that is a multiple of the interval. The lock may be released meanwhile.
func (p *Pacer) reserve(w *waiter) (at time.Duration, err error) {
	o, r, now := w.origin, &w.request, p.now()
	interval := r.distance.Interval
	want := Reservation{
		Key: o.name, Interval: interval, Since: -1, Longest: max(w.deadline-now, 0),
		Memory: max(o.memory, interval, r.memory),
	}
	if last := o.before(r); last != never {
		want.Since = now - last
	}
	switch s := w.slot; {
	case s != nil && s.losses != p.losses:
	case s != nil && max(o.due(r), now) < s.late:
		return max(o.due(r), s.at), nil
	case s != nil:
		want.Returned = s.start
	case r.Fetched: // the fetch does not delay it, and it counts instead of the fetch
		want.Returned, o.fetch = o.fetch, 0
	}
	w.slot = nil
	losses := p.losses
	g, err := p.call(want)
	switch {
	case err != nil:
		return o.before(r) + Times(interval, p.factor), nil
	case g.Start == 0:
		return 0, r.tooLate(g.Wait, ByInterval)
	}
	at = p.now() + g.Wait
	w.slot = &slot{at: at, start: g.Start, late: at + max(10*time.Millisecond, interval/50), losses: losses}
	return max(o.due(r), at), nil
}

// tell tells the clock of a start that does not wait for it, and returns its time by the clock, 0 if that fails. The
// lock is released meanwhile.
func (p *Pacer) tell(o *origin) time.Duration {
	g, _ := p.call(Reservation{Key: o.name, Since: -1, Memory: o.memory})
	return g.Start
}

// call calls the clock. The lock is released meanwhile.
func (p *Pacer) call(r Reservation) (Grant, error) {
	p.mu.Unlock()
	g, err := p.clock.Reserve(r)
	gates := p.clock.Alone()
	p.mu.Lock()
	// A clock that jumps back would stop all requests until it has caught up. Another gate's start is not farther away
	// than its requests may wait.
	longest := p.settings.MaxWait + r.Interval + time.Minute
	if err == nil && (g.Wait < 0 || g.Wait > longest || (g.Start == 0) != (g.Wait > r.Longest)) {
		err = errors.New("the shared clock has given an implausible answer")
	}
	if p.factor = 1; err != nil {
		p.factor = max(gates, 1)
		return Grant{}, err
	}
	return g, nil
}

// Times multiplies an interval, up to a time that does not come.
func Times(interval time.Duration, factor int) time.Duration {
	if interval > forever/2/time.Duration(factor) {
		return forever / 2
	}
	return interval * time.Duration(factor)
}

// maxRecent bounds what [Pacer.Recent] returns.
const maxRecent = 10_000

// Recent returns reservations that only note the last starts at the origins, the newest first, for a
// clock that may have lost them. What was reserved before is reserved anew.
func (p *Pacer) Recent() []Reservation {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.losses++
	now := p.now()
	var all []Reservation
	for _, o := range p.origins {
		if o.turn != nil {
			o.turn.wake()
		}
		if since := now - max(o.last, o.fetched); since < o.memory {
			all = append(all, Reservation{Key: o.name, Since: since, Longest: -1, Memory: o.memory})
		}
	}
	slices.SortFunc(all, func(a, b Reservation) int { return cmp.Compare(a.Since, b.Since) })
	return all[:min(len(all), maxRecent)]
}
