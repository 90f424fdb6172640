package pace

import "time"

const (
	// maxOrigins bounds the origins that a Pacer remembers: some 150 bytes each.
	maxOrigins = 250_000
	// maxCounts bounds the keys of limits: some 130 bytes each.
	maxCounts = 250_000
	// manySteps is how many steps all of them have together, at 16 bytes each, until starts in one window are counted
	// as one step, of which the first ends later than it should.
	manySteps = maxCounts + 200_000
	// sweepInterval is the time between two removals of what need not be remembered.
	sweepInterval = 30 * time.Second
)

// remember returns an origin, a new one if it is not known, nil if there are too many.
func (p *Pacer) remember(name string) *origin {
	if o := p.origins[name]; o != nil {
		return o
	}
	if now := p.now(); len(p.origins) >= maxOrigins && now-p.swept > time.Second {
		if p.sweep(now, forever); len(p.origins) >= maxOrigins {
			p.sweep(now, p.settings.MaxDelay) // or names of one origin with a Crawl-delay of years take all places
		}
	}
	if len(p.origins) >= maxOrigins {
		return nil
	}
	o := &origin{name: name, fetched: never, last: never}
	p.origins[name] = o
	p.sweepLater()
	return o
}

// count returns the count for a limit, nil if there are too many.
func (p *Pacer) count(key countKey, window time.Duration) *count {
	c := p.counts[key]
	if c == nil {
		if now := p.now(); len(p.counts) >= maxCounts && now-p.swept > time.Second {
			p.sweep(now, forever)
		}
		if len(p.counts) >= maxCounts {
			return nil
		}
		c = new(count)
		p.counts[key] = c
		p.sweepLater()
	}
	c.keep = max(c.keep, window)
	return c
}

func (p *Pacer) sweepLater() {
	if !p.sweeping {
		p.sweeping = true
		time.AfterFunc(sweepInterval, p.sweepAgain)
	}
}

func (p *Pacer) sweepAgain() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sweep(p.now(), forever)
	if p.sweeping = false; len(p.origins)+len(p.counts) > 0 && p.closing.Err() == nil {
		p.sweepLater()
	}
}

// sweep removes what can't delay a request any more. Starts of origins before longest do not count.
func (p *Pacer) sweep(now, longest time.Duration) {
	p.swept = now
	for name, o := range p.origins {
		if o.idle(now, longest, &p.settings) {
			delete(p.origins, name)
		}
	}
	for name, c := range p.counts {
		if c.own.within(c.keep, p.sinceStart()) == 0 {
			p.steps -= len(c.own)
			delete(p.counts, name)
		}
	}
}
