package pace

import (
	"crypto/sha256"
	"errors"
	"math"
	"time"
)

// A Limit permits so many starts in any window of time. Requests beyond it are refused, and never wait.
type Limit struct {
	Key    string        // requests with the same key count together
	Starts int           // 1 to 2^31 - 1
	Window time.Duration // at least a millisecond; counted in 64 steps
	Entry  int           // of the budgets, from 1; it counts nothing
}

// An Allowance is what is left of a limit.
type Allowance struct {
	Limit
	Left int // so many further starts are permitted now
}

// A count is what this gate knows of the starts with one key.
type count struct {
	own    Starts
	keep   time.Duration // how long they count
	until  time.Duration // until then requests are refused without asking the clock
	spent  int32         // if their limit permits so many starts
	asking int32         // calls of the clock that are under way
}

// fitBudget refuses a request beyond its budget, by what this gate knows.
func (p *Pacer) fitBudget(a *arrival) {
	l, ok := p.settings.limit(a.request)
	if !ok {
		return
	}
	c := p.counts[l.hash()]
	if c == nil {
		return
	}
	peek := l.reservation()
	peek.Longest = -1
	until := a.now + p.add(c, l, peek).Wait
	if c.spent == int32(l.Starts) {
		until = max(until, c.until)
	}
	if until > a.at {
		a.at, a.by, a.limit, a.waits, a.refused = until, ByBudget, l, true, true
	}
}

// spend counts a start, if the request's budget permits it. Gates that share a [Clock] share the budget. While the clock
// can't be used, each gate counts its own starts, and permits its part of them.
func (p *Pacer) spend(t *Turn) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	l, ok := p.settings.limit(&t.request)
	if !ok {
		return nil
	}
	c := p.count(l.hash(), l.Window)
	if c == nil {
		return &TooLate{After: sweepInterval, By: ByBudget, Full: true, Distance: t.Distance, Limit: l}
	}
	g, alone := p.take(c, l)
	if g.Start != 0 {
		t.Allowance = Allowance{l, g.Left}
		return nil
	}
	c.spent, c.until = int32(l.Starts), p.now()+g.Wait
	if alone {
		c.until = p.now() + min(g.Wait, time.Second) // then the clock may be back
	}
	p.refuseReached(t.request.Origin, l)
	return &TooLate{After: g.Wait, By: ByBudget, Distance: t.Distance, Limit: l}
}

// spendObserved counts a start of report mode, also beyond the budget. Other gates learn of it in the background.
func (p *Pacer) spendObserved(t *Turn) {
	l, ok := p.settings.limit(&t.request)
	if !ok {
		return
	}
	c := p.count(l.hash(), l.Window)
	if c == nil {
		return
	}
	p.add(c, l, l.unlimited())
	t.Allowance = Allowance{l, max(0, l.Starts-c.own.within(l.Window, p.sinceStart()))}
	if p.clock == nil {
		return
	}
	p.miss(l, 1)
	if p.calls >= maxCalls {
		return
	}
	p.calls++
	go func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		tell := l.reservation()
		tell.Longest = -1
		_, _, _ = p.tellMissed(l, tell)
		p.calls--
	}()
}

// name returns the key of the limit among those of the shared clock.
func (l Limit) name() string { return "budget " + l.Key }

// A countKey is a hash of the name of a limit, which is shorter.
type countKey [16]byte

func (l Limit) hash() countKey {
	sum := sha256.Sum256([]byte(l.name()))
	return countKey(sum[:])
}

// reservation returns what counts a start now, if the limit permits it.
func (l Limit) reservation() Reservation {
	return Reservation{Key: l.name(), Interval: l.Window, Starts: l.Starts, Step: l.Window / 64, Since: -1, Memory: l.Window}
}

// take counts a start, if the limit permits it. The lock is released meanwhile if gates share the limit. alone
// reports that only this gate's part was looked at, since the clock can't be used.
func (p *Pacer) take(c *count, l Limit) (g Grant, alone bool) {
	r := l.reservation()
	if p.clock != nil {
		// What is older may have ended by the clock already.
		r.Own = c.own.within(l.Window-2*r.Step, p.sinceStart())
		c.asking++
		g, gates, err := p.tellMissed(l, r)
		c.asking--
		if err == nil {
			if g.Start != 0 {
				p.add(c, l, l.unlimited())
			}
			return g, false
		}
		r.Starts, alone = max(r.Starts/gates, 1), true
	}
	if g = p.add(c, l, r); alone && g.Start != 0 {
		p.miss(l, 1)
	}
	return g, alone
}

// add counts a start in what this gate knows, if the reservation permits it.
func (p *Pacer) add(c *count, l Limit, r Reservation) Grant {
	if p.steps >= manySteps {
		r.Step = r.Interval
	}
	steps := len(c.own)
	g := c.own.Reserve(r, p.sinceStart())
	p.steps += len(c.own) - steps
	if g.Start != 0 && p.noted != nil {
		p.note(l.hash(), l.Window)
	}
	return g
}

// miss notes starts that the clock must be told of.
func (p *Pacer) miss(l Limit, n int) {
	if p.missed == nil {
		p.missed = map[countKey]int{}
	}
	p.missed[l.hash()] += n
}

// tellMissed calls the clock with a reservation for a limit, and tells it of the starts that it has missed. The lock is
// released meanwhile.
func (p *Pacer) tellMissed(l Limit, r Reservation) (g Grant, gates int, err error) {
	key := l.hash()
	r.Missed = p.missed[key]
	if c := p.counts[key]; c != nil { // the others have left the window
		r.Missed = min(r.Missed, c.own.within(l.Window, p.sinceStart()))
	}
	delete(p.missed, key)
	g, gates, err = p.reserve(r)
	if err != nil && !errors.Is(err, errImplausible) && r.Missed > 0 { // the store has counted what an implausible answer is for
		p.miss(l, r.Missed)
	}
	return g, gates, err
}

// unlimited returns what counts a start in any case.
func (l Limit) unlimited() Reservation {
	l.Starts = math.MaxInt32
	return l.reservation()
}

// sinceStart is the time by which this gate counts. Starts of an earlier process have positive times, too.
func (p *Pacer) sinceStart() time.Duration { return p.now() + longestWindow }

// refuseReached ends the waiting of requests for an origin that a limit refuses, so that they take no turns.
func (p *Pacer) refuseReached(name string, l Limit) {
	o := p.origins[name]
	if o == nil {
		return
	}
	now := p.now()
	for w := range o.all() {
		if a := p.foresee(o, &w.request, now, forever); a.limit == l {
			p.remove(w)
			w.end(nil, a.tooLate(false))
		}
	}
	p.pumpSoon(o, now)
}
