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
	// sweepInterval is the time between two removals of what need not be remembered, at least.
	sweepInterval = 30 * time.Second
)

// remember returns an origin, a new one if it is not known, nil if there are too many.
func (p *Pacer) remember(name string) *origin {
	if o := p.origins[name]; o != nil {
		return o
	}
	if p.sweep(); len(p.origins) >= maxOrigins {
		return nil
	}
	o := &origin{name: name, fetched: never, last: never}
	p.origins[name] = o
	return o
}

// count returns the count for a limit, nil if there are too many.
func (p *Pacer) count(key countKey, window time.Duration) *count {
	c := p.counts[key]
	if c == nil {
		if p.sweep(); len(p.counts) >= maxCounts {
			return nil
		}
		c = new(count)
		p.counts[key] = c
	}
	c.keep = max(c.keep, window)
	return c
}

// sweep removes what can't delay a request any more, unless it has done so a short time ago.
func (p *Pacer) sweep() {
	now, interval := p.now(), sweepInterval
	if len(p.origins) >= maxOrigins || len(p.counts) >= maxCounts {
		interval = time.Second
	}
	if now-p.swept < interval {
		return
	}
	p.swept = now
	p.sweepOrigins(now, forever)
	if len(p.origins) >= maxOrigins { // names of one origin with a Crawl-delay of years would take all places
		p.sweepOrigins(now, p.settings.MaxDelay)
	}
	p.steps = 0
	for key, c := range p.counts {
		if c.own.within(c.keep, p.sinceStart()) == 0 {
			delete(p.counts, key)
		} else {
			p.steps += len(c.own)
		}
	}
}

// sweepOrigins removes origins. Their starts count for longest at most.
func (p *Pacer) sweepOrigins(now, longest time.Duration) {
	for name, o := range p.origins {
		if o.idle(now, longest, &p.settings) {
			delete(p.origins, name)
		}
	}
}
