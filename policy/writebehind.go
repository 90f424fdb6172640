package policy

import (
	"maps"
	"slices"
)

// An unsaved entry is one that another has taken the place of before the store had
// it. Requests may have been decided by it, so it is saved all the same, first.
type unsaved struct {
	origin string
	entry  *entry
}

// within reports whether next has every answer of r: then r need not be saved.
func (r *Record) within(next *Record) bool {
	has := func(s *Snapshot) bool {
		return s == nil || s == next.Good || s == next.Last || slices.Contains(slices.Collect(maps.Values(next.Bound)), s)
	}
	for _, s := range r.Bound {
		if !has(s) {
			return false
		}
	}
	return has(r.Good) && has(r.Last)
}

// supersede keeps what was to be saved of an origin until it is, before another
// entry takes its place. The caller holds the lock.
func (c *cache) supersede(origin string, by *entry) {
	old := c.pending[origin]
	if old == nil || old.within(&by.Record) {
		return
	}
	c.earlier = append(c.earlier, unsaved{origin, old})
	c.bytes += old.cost(origin)
	for c.bytes+by.cost(origin) > c.most && len(c.earlier) > 0 { // the store is failing
		c.bytes -= c.earlier[0].entry.cost(c.earlier[0].origin)
		c.earlier = c.earlier[1:]
	}
}

// rounds returns what has to be saved one after the other: of each origin one
// entry at a time, those last that are in force. The caller holds the lock.
func (c *cache) rounds() (all []map[string]*entry) {
	place := map[string]int{}
	for _, u := range c.earlier {
		i := place[u.origin]
		if i == len(all) {
			all = append(all, map[string]*entry{})
		}
		all[i][u.origin] = u.entry
		place[u.origin]++
	}
	if len(c.pending) > 0 {
		all = append(all, maps.Clone(c.pending))
	}
	return all
}

// saved ends the wait of entries that the store has by now.
func (c *cache) saved(round map[string]*entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.earlier = slices.DeleteFunc(c.earlier, func(u unsaved) bool {
		done := round[u.origin] == u.entry
		if done {
			c.bytes -= u.entry.cost(u.origin)
		}
		return done
	})
}

// recordsOf returns what the store takes.
func recordsOf(round map[string]*entry) map[string]Record {
	records := make(map[string]Record, len(round))
	for o, e := range round {
		records[o] = e.Record
	}
	return records
}
