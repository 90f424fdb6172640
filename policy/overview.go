package policy

import "time"

// Outages returns origins whose robots.txt can't be fetched, the last that was tried
// first. Only the last 50 are kept.
func (e *Engine) Outages() []Outage {
	return e.resolver.cache.outages.list(e.resolver.robots, time.Now())
}

// A Size is what a cache holds in memory.
type Size struct {
	Entries int
	Bytes   int64
	Bound   int64 // on Bytes
}

// Cached returns the size of the compiled rules in memory.
func (e *Engine) Cached() Size {
	var s Size
	s.Entries, s.Bytes, s.Bound = e.resolver.cache.entries.Usage()
	return s
}

// Size returns that of the memory.
func (t *TagCache) Size() Size {
	var s Size
	s.Entries, s.Bytes, s.Bound = t.pages.Usage()
	return s
}
