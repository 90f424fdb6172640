package overview

import (
	"hash/maphash"
	"slices"

	"robotsgate/policy/usage"
	"robotsgate/proxy"
)

// maxStating bounds the origins that are counted in each ten minutes, and so the memory: some 3 MB.
const maxStating = 20_000

// Other is the category of all categories that mean nothing to the gate.
const Other = "other"

// A Stated is how many origins of the last hour have stated something about a category, for any of the
// requested URLs. An origin can be counted in both.
type Stated struct {
	Category string `json:"category"` // a [usage.Purpose], or Other
	Reserved int    `json:"reserved"` // origins that have said n
	Allowed  int    `json:"allowed"`  // y
}

// statements has a bit for each category and value: 1<<(2*i) for y of usage.Purposes[i], and the next
// for n. The last two are for other categories.
type statements uint16

// stating finds out what the origins of the last hour state.
type stating struct {
	seed    maphash.Seed // of this process, so that no client can make two origins one
	windows ring[statedWindow]
}

type statedWindow struct {
	origins map[uint64]statements
	full    bool // there were more than maxStating
}

// add adds what was stated for a request that ended in a minute.
func (s *stating) add(x *proxy.Record, minute int64) {
	if len(x.Stated.Preferences) == 0 || x.Origin == "" {
		return
	}
	var said statements
	for _, p := range x.Stated.Preferences {
		i := slices.Index(usage.Purposes, usage.Purpose(p.Category))
		if i < 0 {
			i = len(usage.Purposes)
		}
		bit := statements(1) << (2 * i)
		if !p.Allowed {
			bit <<= 1
		}
		said |= bit
	}
	w := s.windows.of(minute / span)
	if w.origins == nil {
		w.origins = map[uint64]statements{}
	}
	origin := maphash.String(s.seed, x.Origin)
	if _, known := w.origins[origin]; !known && len(w.origins) == maxStating {
		w.full = true
		return
	}
	w.origins[origin] |= said
}

// copied returns what each origin of the last hour has stated, and whether there were more origins than
// are counted.
func (s *stating) copied(minute int64) (all map[uint64]statements, more bool) {
	all = map[uint64]statements{}
	for _, w := range s.windows.until(minute/span, windows) {
		more = more || w.full
		for origin, said := range w.origins {
			all[origin] |= said
		}
	}
	return all, more
}

// statedBy counts the origins by category, those with any.
func statedBy(origins map[uint64]statements) []Stated {
	counts := make([]Stated, len(usage.Purposes)+1)
	for i, p := range usage.Purposes {
		counts[i].Category = string(p)
	}
	counts[len(usage.Purposes)].Category = Other
	for _, said := range origins {
		for i := range counts {
			counts[i].Allowed += int(said >> (2 * i) & 1)
			counts[i].Reserved += int(said >> (2*i + 1) & 1)
		}
	}
	return slices.DeleteFunc(counts, func(s Stated) bool { return s.Reserved+s.Allowed == 0 })
}
