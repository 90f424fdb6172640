package pace

import (
	"cmp"
	"slices"
)

// A Queue is an origin for which requests wait.
type Queue struct {
	Origin  string  `json:"origin"`
	Waiting int     `json:"waiting"`
	Longest float64 `json:"longest"` // seconds that one of them has waited
}

// Waiting returns the number of requests that wait.
func (p *Pacer) Waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waiting
}

// Queues returns the origins for which requests wait, those with the most first.
func (p *Pacer) Queues() (all []Queue) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	for o := range p.queued {
		q := Queue{Origin: o.name, Waiting: o.waiting}
		for w := range o.all() {
			q.Longest = max(q.Longest, (now - w.arrived).Seconds())
		}
		all = append(all, q)
	}
	slices.SortFunc(all, func(a, b Queue) int {
		return cmp.Or(cmp.Compare(b.Waiting, a.Waiting), cmp.Compare(a.Origin, b.Origin))
	})
	return all
}
