package policy

import "time"

// Outages returns origins whose robots.txt can't be had, the last that was tried
// in front. It knows of the last 50.
func (e *Engine) Outages() []Outage { return e.robots.cache.down.list(e.robots.robots, time.Now()) }

// A Size is what a cache holds in memory.
type Size struct {
	Entries int
	Bytes   int64
	Bound   int64 // on Bytes
}

// Cached returns the size of the compiled rules in memory. It looks at each of
// them: not for every request.
func (e *Engine) Cached() Size {
	c := e.robots.cache.front
	var n int
	c.IterValues(func(*entry) bool { n++; return false })
	return Size{n, c.MaxCost() - c.RemainingCost(), c.MaxCost()}
}

// Size returns that of the memory, as [Engine.Cached] does, without what has come in the
// last moment.
func (r *TagCache) Size() Size {
	var n int
	r.front.IterValues(func(*CachedTags) bool { n++; return false })
	return Size{n, r.front.MaxCost() - r.front.RemainingCost(), r.front.MaxCost() + 2*r.most}
}
