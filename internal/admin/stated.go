package admin

import (
	"hash/maphash"
	"slices"

	"robotsgate/internal/record"
	"robotsgate/policy/usage"
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
func (s *stating) add(x *record.Record, minute int64) {
	if len(x.Usage) == 0 || x.Origin == "" {
		return
	}
	var said statements
	for _, p := range x.Usage {
		if p.Use == usage.LevelCategory {
			continue
		}
		i := slices.Index(usage.Purposes, usage.Purpose(p.Use))
		if i < 0 {
			i = len(usage.Purposes)
		}
		bit := statements(1) << (2 * i)
		if p.Value == "n" {
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

// count counts the origins of the last hour by category, those with any. It returns how many origins there are, and
// whether there were more than are counted.
func (s *stating) count(minute int64) (all []Stated, origins int, more bool) {
	said := map[uint64]statements{}
	for _, w := range s.windows.until(minute/span, windows) {
		more = more || w.full
		for origin, bits := range w.origins {
			said[origin] |= bits
		}
	}
	for _, p := range append(slices.Clip(usage.Purposes), Other) {
		all = append(all, Stated{Category: string(p)})
	}
	for _, bits := range said {
		for i := range all {
			all[i].Allowed += int(bits >> (2 * i) & 1)
			all[i].Reserved += int(bits >> (2*i + 1) & 1)
		}
	}
	all = slices.DeleteFunc(all, func(s Stated) bool { return s.Reserved+s.Allowed == 0 })
	return all, len(said), more
}
