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

// reservation returns what counts a start now, if so many are permitted.
func (l *Limit) reservation(starts int) Reservation {
	return Reservation{Key: l.name(), Interval: l.Window, Starts: starts, Step: l.Window / 64, Since: -1, Memory: l.Window}
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
	peek := l.reservation(l.Starts)
	peek.Longest = -1
	wait := p.add(l, c, peek).Wait
	if wait <= after {
		return nil
	}
	return &TooLate{After: wait, By: ByBudget, Distance: r.distance, Limit: *l}
}

// spend counts a start if the request's limit permits it, and in any case if it is only observed. Gates that share a [Clock]
// share the limit. While the clock can't be used, each gate counts its own starts, permits its part of them, and tells the
// clock of them later. The lock may be released meanwhile.
func (p *Pacer) spend(r *Request, observed bool) (Allowance, error) {
	l := &r.limit
	if l.Starts == 0 {
		return Allowance{}, nil
	}
	key, permitted := l.hash(), l.Starts
	c := p.count(key, l.Window)
	var g Grant
	shared := false
	if c != nil && p.clock != nil {
		ask := l.reservation(permitted)
		if observed {
			ask.Starts = math.MaxInt32
		}
		ask.Missed, c.missed = min(c.missed, c.own.within(l.Window, p.sinceStart())), 0 // earlier ones have left the window
		var err error
		g, err = p.call(ask)
		c = p.count(key, l.Window)
		if shared = err == nil; !shared && c != nil {
			c.missed += ask.Missed
			permitted = max(permitted/p.factor, 1)
		}
	}
	if c == nil {
		e := r.noPlace(ByBudget)
		e.Limit = *l
		return Allowance{}, e
	}
	own := l.reservation(permitted)
	if observed || shared && g.Start != 0 {
		own.Starts = math.MaxInt32
	}
	switch {
	case !shared:
		if g = p.add(l, c, own); g.Start != 0 && p.clock != nil {
			c.missed++
		}
	case g.Start != 0:
		p.add(l, c, own)
	}
	if g.Start == 0 {
		return Allowance{}, &TooLate{After: g.Wait, By: ByBudget, Distance: r.distance, Limit: *l}
	}
	if observed {
		g.Left = max(g.Left-(math.MaxInt32-permitted), 0)
	}
	return Allowance{*l, g.Left}, nil
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
