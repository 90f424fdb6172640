package pace

import "time"

// maxOrigins bounds the origins that a Pacer remembers: some 150 bytes each.
const maxOrigins = 250_000

// sweepInterval is the time between two removals of origins that need not be remembered.
const sweepInterval = 30 * time.Second

// remember returns a new origin, nil if there are too many.
func (p *Pacer) remember(name string, now time.Duration) *origin {
	if len(p.origins) >= maxOrigins && now-p.swept > time.Second {
		if p.sweep(now, forever); len(p.origins) >= maxOrigins {
			p.sweep(now, p.settings.MaxDelay) // or names of one origin with a Crawl-delay of years take all places
		}
	}
	if len(p.origins) >= maxOrigins {
		return nil
	}
	o := &origin{name: name, fetched: never, last: never}
	p.origins[name] = o
	if !p.sweeping {
		p.sweeping = true
		time.AfterFunc(sweepInterval, p.sweepAgain)
	}
	return o
}

func (p *Pacer) sweepAgain() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sweep(p.now(), forever)
	if p.sweeping = len(p.origins) > 0 && !p.closed; p.sweeping {
		time.AfterFunc(sweepInterval, p.sweepAgain)
	}
}

// sweep removes the origins that can't delay a request any more. Starts before longest do not count.
func (p *Pacer) sweep(now, longest time.Duration) {
	p.swept = now
	for name, o := range p.origins {
		if o.idle(now, longest) {
			delete(p.origins, name)
		}
	}
}
