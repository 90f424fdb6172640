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
	// Pause calls change with the pause of a product token at an origin, and the time: zero if none is known.
	// It keeps what change has made of it, until its Ends, if change reports true. If another gate has changed
	// it meanwhile, change is called again, with that.
	Pause(origin, token string, change func(p *Pause, now time.Duration) bool) error
}

// maxCalls bounds the calls of the clock that no request waits for. A start that it is not told of
// counts with the next reservation; one that is not given back costs an interval.
const maxCalls = 64

// shared is the state of an origin whose starts are shared by a Clock.
type shared struct {
	asking bool          // a call is under way: there is one at a time
	slot   *slot         // reserved for the request that has the turn; nil: none is
	failed time.Duration // when the last call has failed
	factor int           // of intervals, since then; 1 if the last call has not failed
	fetch  time.Duration // by the clock, of the last fetch of robots.txt; 0: not known
}

// A slot is a start that was reserved.
type slot struct {
	at       time.Duration
	start    time.Duration // by the clock
	interval time.Duration // of the request for which it was reserved
	lost     bool          // the clock may have forgotten it
}

// late returns how much later than reserved a request may start. A gate that was stopped meanwhile
// reserves anew, since other gates start by the reserved time.
func (s *slot) late() time.Duration { return max(10*time.Millisecond, s.interval/50) }

// shares reports whether a request starts by the shared clock.
func (p *Pacer) shares(r Request) bool {
	return p.clock != nil && r.paced()
}

// share makes an origin one whose starts are shared, if the request is to start by the shared clock.
func (p *Pacer) share(o *origin, r Request) bool {
	if !p.shares(r) {
		return false
	}
	if o.shared == nil {
		o.shared = &shared{failed: never, factor: 1}
	}
	return true
}

// dueShared returns when a request that has the turn may start. Ask reports that a start must be
// reserved first.
//
// After a failure the clock is asked again whenever something happens at the origin, and before each
// start. It has failed at this very moment if the request goes by this gate's own starts.
func (o *origin) dueShared(r Request, now time.Duration) (at time.Duration, ask bool) {
	own, s := o.due(r), o.shared
	switch {
	case s.asking:
		return forever, false
	case s.failed == now:
		r.distance.Interval = Times(r.distance.Interval, s.factor)
		return o.due(r), false
	case s.slot == nil || s.slot.interval != r.distance.Interval || s.slot.lost || s.slot.at+s.slot.late() < max(own, now):
		return forever, true
	}
	return max(s.slot.at, own), false
}

// Times multiplies an interval, up to a time that does not come.
func Times(interval time.Duration, factor int) time.Duration {
	if interval > forever/2/time.Duration(factor) {
		return forever / 2
	}
	return interval * time.Duration(factor)
}

// ask reserves a start for a request that has the turn. The lock is released meanwhile.
func (p *Pacer) ask(o *origin, w *waiter) {
	now, s, r := p.now(), o.shared, w.request
	interval := r.distance.Interval
	want := Reservation{Key: o.name, Interval: interval, Since: now - o.before(r), Longest: p.longest(w, now), Memory: max(o.memory, interval, r.memory)}
	if o.before(r) == never {
		want.Since = -1
	}
	switch {
	case s.slot != nil && !s.slot.lost:
		want.Returned = s.slot.start
	case r.Fetched: // the fetch does not delay it, and it counts instead of the fetch
		want.Returned = s.fetch
	}
	s.slot, s.fetch = nil, 0
	g, now, err := p.call(o, want)
	switch {
	case err != nil:
	case g.Start != 0:
		s.slot = &slot{at: now + g.Wait, start: g.Start, interval: interval}
		w.deadline = max(w.deadline, s.slot.at) // the way of the answer does not count
	case !w.ended():
		p.refuse(w, g.Wait, ByInterval)
	}
	p.pumpSoon(o, now)
	if p.closed {
		p.drain(o)
	}
}

// longest returns how much longer a request may wait.
func (p *Pacer) longest(w *waiter, now time.Duration) time.Duration {
	if p.closed || w.urgent {
		return 0
	}
	return max(w.deadline-now, 0)
}

// tell tells the clock of a start that does not wait for it, in the background. If that is not
// possible now, the next reservation does.
func (p *Pacer) tell(o *origin, fetch bool) {
	s := o.shared
	if s == nil || s.slot != nil {
		return
	}
	p.background(o, Reservation{Key: o.name, Since: -1, Memory: o.memory}, func(g Grant) {
		if fetch {
			s.fetch = g.Start
		}
	})
}

// giveBack gives back a start that no request uses.
func (p *Pacer) giveBack(o *origin) {
	if s := o.shared; s != nil && s.slot != nil {
		back := Reservation{Key: o.name, Since: -1, Longest: -1, Memory: o.memory, Returned: s.slot.start}
		s.slot = nil
		p.background(o, back, func(Grant) {})
	}
}

// background calls the clock while no request waits for it.
func (p *Pacer) background(o *origin, r Reservation, then func(Grant)) {
	if o.shared.asking || p.calls >= maxCalls {
		return
	}
	o.shared.asking = true
	p.calls++
	go func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		g, now, err := p.call(o, r)
		p.calls--
		if err == nil {
			then(g)
		}
		p.pumpSoon(o, now)
	}()
}

// call calls the clock. The lock is released meanwhile. It returns the time of the answer too.
func (p *Pacer) call(o *origin, r Reservation) (g Grant, now time.Duration, err error) {
	s := o.shared
	s.asking = true
	g, gates, err := p.reserve(r)
	now = p.now()
	s.asking, s.failed, s.factor = false, never, 1
	if err != nil {
		s.failed, s.factor = now, gates
	}
	return g, now, err
}

// reserve calls the clock, and checks its answer. It returns the number of gates too. The
// lock is released meanwhile.
func (p *Pacer) reserve(r Reservation) (g Grant, gates int, err error) {
	p.mu.Unlock()
	g, err = p.clock.Reserve(r)
	gates = max(p.clock.Alone(), 1)
	p.mu.Lock()
	if err == nil && !p.plausible(r, g) {
		err = errImplausible
	}
	g.Wait = max(g.Wait, 0)
	return g, gates, err
}

var errImplausible = errors.New("the shared clock has given an implausible answer")

// plausible reports whether an answer of the clock may be true. Without this check a clock that jumps
// back would stop all requests until it has caught up, and one that disregards this gate's own start
// would be asked again and again.
func (p *Pacer) plausible(r Reservation, g Grant) bool {
	switch {
	case r.Longest < 0:
		return g.Start == 0
	case g.Start != 0:
		return g.Wait <= r.Longest && (r.Since < 0 || g.Wait >= r.Interval-r.Since-time.Millisecond)
	}
	// Another gate's start is not farther away than its requests may wait.
	return g.Wait > r.Longest && g.Wait <= p.settings.MaxWait+r.Interval+time.Minute
}

// maxRecent bounds what [Pacer.Recent] returns.
const maxRecent = 10_000

// Recent returns reservations that only note the last starts at the origins, the newest first, for a
// clock that may have lost them. What was reserved before is reserved anew.
func (p *Pacer) Recent() []Reservation {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	var all []Reservation
	for _, o := range p.origins {
		if o.shared == nil {
			continue
		}
		if o.shared.slot != nil {
			o.shared.slot.lost = true
		}
		if since := now - max(o.last, o.fetched); since < o.memory {
			all = append(all, Reservation{Key: o.name, Since: since, Longest: -1, Memory: o.memory})
		}
	}
	slices.SortFunc(all, func(a, b Reservation) int { return cmp.Compare(a.Since, b.Since) })
	return all[:min(len(all), maxRecent)]
}
