package admin

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// A Tally is how often requests were denied, by host or by rule. It is never too high; it may
// be too low if there are more hosts or rules than can be counted separately.
type Tally[K comparable] struct {
	Of       K      `json:"of"`
	Denied   uint64 `json:"denied"`
	Reported uint64 `json:"reported,omitempty"`
}

func (r Rule) compare(other Rule) int {
	return cmp.Or(strings.Compare(r.Origin, other.Origin), cmp.Compare(r.Line, other.Line), strings.Compare(r.Text, other.Text))
}

const (
	windows = 6  // of an hour: the oldest is forgotten as a whole
	span    = 10 // minutes of a window
	// capacity is how many keys a window counts separately.
	capacity = 128
)

// recent finds the most frequent keys of the last hour.
type recent[K comparable] struct{ windows ring[window[K]] }

// add counts a denial in a minute.
func (r *recent[K]) add(minute int64, key K, enforced bool) {
	i := r.windows.of(minute / span).item(key)
	if enforced {
		i.Denied++
	} else {
		i.Reported++
	}
}

// top adds up the tallies of each key in the last hour's windows, and returns the n largest sums in order: a denied
// request counts more than any number that report mode let through.
func (r *recent[K]) top(minute int64, n int, compare func(a, b K) int) []Tally[K] {
	sums := map[K]Tally[K]{}
	for _, w := range r.windows.until(minute/span, windows) {
		for _, i := range w.items {
			sum := sums[i.Of]
			sums[i.Of] = Tally[K]{i.Of, sum.Denied + i.Denied, sum.Reported + i.Reported}
		}
	}
	all := slices.SortedFunc(maps.Values(sums), func(a, b Tally[K]) int {
		return cmp.Or(cmp.Compare(b.Denied, a.Denied), cmp.Compare(b.Reported, a.Reported), compare(a.Of, b.Of))
	})
	return all[:min(n, len(all))]
}

// A window counts keys by the Space-Saving algorithm (Metwally, Agrawal and El Abbadi, 2005):
// a new key replaces the one with the lowest weight, and inherits that weight. So a key that
// accounts for more than 1/capacity of all counts is always kept.
type window[K comparable] struct {
	index map[K]*item[K]
	items []*item[K]
}

type item[K comparable] struct {
	Tally[K]
	weight uint64 // an upper bound of the counts of the key
}

// item returns the item of a key, with its weight increased by one.
func (w *window[K]) item(key K) *item[K] {
	i := w.index[key]
	switch {
	case i != nil:
	case len(w.items) < capacity:
		if w.index == nil {
			w.index = make(map[K]*item[K], capacity)
		}
		i = &item[K]{Tally: Tally[K]{Of: key}}
		w.items = append(w.items, i)
		w.index[i.Of] = i
	default:
		i = slices.MinFunc(w.items, func(a, b *item[K]) int { return cmp.Compare(a.weight, b.weight) })
		delete(w.index, i.Of)
		i.Tally = Tally[K]{Of: key}
		w.index[i.Of] = i
	}
	i.weight++
	return i
}
