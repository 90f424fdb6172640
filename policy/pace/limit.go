package pace

import (
	"crypto/sha256"
	"math"
	"time"
)

// A Limit permits so many starts in any window of time. Requests beyond it are refused, and never wait.
type Limit struct {
	Key    string        // requests with the same key count together
	Starts int           // 1 to 2^31 - 1
	Window time.Duration // at least a millisecond; counted in 64 steps
	Entry  int           // of the budgets, from 1; it counts nothing
	Left   int           // so many further starts are permitted now, in a [Turn]
}

// A count is what this gate knows of the starts with one key.
type count struct {
	own    Starts
	keep   time.Duration // how long they count
	missed int           // starts that the clock must be told of
}

// A countKey is a hash of the name of a limit, which is shorter.
type countKey [16]byte

func (l *Limit) hash() countKey {
	sum := sha256.Sum256([]byte(l.name()))
	return countKey(sum[:])
}

// name returns the key of the limit among those of the shared clock.
func (l *Limit) name() string { return "budget " + l.Key }

// reservation returns what counts a start now, if the limit permits it.
func (l *Limit) reservation() Reservation {
	return Reservation{
		Key: l.name(), Interval: l.Window, Starts: l.Starts, Step: l.Window / 64, Since: -1, Memory: l.Window,
	}
}

// unlimited returns what counts a start in any case.
func (l Limit) unlimited() Reservation {
	l.Starts = math.MaxInt32
	return l.reservation()
}

// spent refuses a request that may start after some time if its limit is reached for longer, by what this gate knows.
func (p *Pacer) spent(r *Request, after time.Duration) error {
	l := &r.limit
	if l.Starts == 0 {
		return nil
	}
	c := p.counts[l.hash()]
	if c == nil {
		return nil
	}
	peek := l.reservation()
	peek.Longest = -1
	wait := p.add(l, c, peek).Wait
	if wait <= after {
		return nil
	}
	return &TooLate{After: wait, By: ByBudget, Distance: r.distance, Limit: *l}
}

// spend counts a start, if the request's limit permits it, and returns the limit. A start that is only observed counts
// in any case. Gates that share a [Clock] share the limit. While the clock can't be used, each gate permits its part by
// its own starts, and tells the clock of them later. The lock may be released meanwhile.
func (p *Pacer) spend(r *Request, observed bool) (Limit, error) {
	l := r.limit // the settings may change meanwhile
	if l.Starts == 0 {
		return l, nil
	}
	c := p.count(l.hash(), l.Window)
	if c == nil {
		e := r.noPlace(ByBudget)
		e.Limit = l
		return Limit{}, e
	}
	ask := l.reservation()
	if observed { // as one that the clock has missed
		p.add(&l, c, l.unlimited())
		c.missed++
		ask.Longest = -1
		p.spendShared(&l, c, ask)
		l.Left = max(0, l.Starts-c.own.within(l.Window, p.sinceStart()))
		return l, nil
	}
	g, shared := p.spendShared(&l, c, ask)
	switch {
	case !shared:
		ask.Starts = max(ask.Starts/p.factor, 1)
		if g = p.add(&l, c, ask); g.Start != 0 {
			c.missed++
		}
	case g.Start != 0:
		p.add(&l, c, l.unlimited())
	}
	if g.Start == 0 {
		return Limit{}, &TooLate{After: g.Wait, By: ByBudget, Distance: r.distance, Limit: l}
	}
	l.Left = g.Left
	return l, nil
}

// spendShared asks the clock, and tells it of the starts that it has missed. It reports whether the clock has answered.
func (p *Pacer) spendShared(l *Limit, c *count, r Reservation) (g Grant, ok bool) {
	if p.clock == nil {
		return g, false
	}
	r.Missed, c.missed = min(c.missed, c.own.within(l.Window, p.sinceStart())), 0 // earlier ones have left the window
	g, err := p.call(r)
	if err != nil {
		c.missed += r.Missed
	}
	return g, err == nil
}

// add counts a start in what this gate knows, if the reservation permits it.
func (p *Pacer) add(l *Limit, c *count, r Reservation) Grant {
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

// sinceStart is the time by which this gate counts. Starts of an earlier process have positive times, too.
func (p *Pacer) sinceStart() time.Duration { return p.now() + longestWindow }
