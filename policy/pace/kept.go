package pace

import (
	"math"
	"slices"
	"time"
)

// Kept are starts that count for a limit, in a form that survives the process.
type Kept struct {
	Key    []byte        `json:"key"` // a hash of the limit's name
	Window time.Duration `json:"window"`
	At     time.Time     `json:"at"` // the last of them
	N      int           `json:"n"`
}

// Kept returns the starts that count for limits and that an earlier call has not returned; all if the caller has lost
// those. After the first call a Pacer notes starts for it. Gates that share a [Clock] need not call it.
func (p *Pacer) Kept(all bool) (starts []Kept) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if all {
		for key, c := range p.counts {
			for _, s := range slices.Backward(c.own) { // the oldest first, as Restore wants them
				starts = append(starts, Kept{key[:], c.keep, time.Now().Add(s.Last - p.sinceStart()), s.N})
			}
		}
	} else {
		for key, s := range p.noted {
			s.Key = key[:]
			starts = append(starts, s)
		}
	}
	p.noted = map[countKey]Kept{}
	return starts
}

// Restore counts starts of an earlier process, before the first request. It is called for the oldest first. Starts in
// the future, as after a clock was set back, count as of now.
func (p *Pacer) Restore(s Kept) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.sinceStart() - max(0, time.Since(s.At))
	if len(s.Key) != len(countKey{}) || s.N < 1 || s.N > math.MaxInt32 {
		return
	}
	if s.Window <= 0 || s.Window > longestWindow || at+s.Window <= p.sinceStart() {
		return
	}
	if c := p.count(countKey(s.Key), s.Window); c != nil {
		steps := len(c.own)
		if c.own = c.own.with(Step{at, s.N}, s.Window/64); len(c.own) > maxSteps {
			c.own = c.own[:maxSteps]
		}
		p.steps += len(c.own) - steps
	}
}

// note notes a start that was counted now.
func (p *Pacer) note(key countKey, window time.Duration) {
	if p.noted != nil {
		p.noted[key] = Kept{Window: window, At: time.Now(), N: p.noted[key].N + 1}
	}
}
