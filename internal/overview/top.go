package overview

import (
	"cmp"
	"hash/maphash"
	"slices"
	"strings"
)

// A Tally is how often something was denied. It is never more than there were;
// where clients ask for more than can be kept apart it may be less.
type Tally[K comparable] struct {
	Of       K      `json:"of"`
	Denied   uint64 `json:"denied"`
	Reported uint64 `json:"reported,omitempty"`
}

func (r Rule) compare(other Rule) int {
	return cmp.Or(strings.Compare(r.Origin, other.Origin), cmp.Compare(r.Line, other.Line), strings.Compare(r.Text, other.Text))
}

const (
	windows = 6  // that an hour is counted in, so that what is over goes away
	span    = 10 // minutes of a window
	// capacity is how many are kept apart in a window. Whatever comes up in more
	// than one of so many requests is among them.
	capacity = 128
)

// recent finds what comes up most in the last hour.
type recent[K comparable] struct{ windows [windows]window[K] }

// add counts a denial in a minute. Own makes a copy of a key, which may be part of
// something larger.
func (r *recent[K]) add(minute int64, key K, own func(K) K, enforced bool) {
	at := minute / span
	w := &r.windows[at%windows]
	if w.at != at || w.index == nil {
		*w = window[K]{at: at, index: make(map[K]*item[K], capacity)}
	}
	i := w.take(key, own)
	if enforced {
		i.Denied++
	} else {
		i.Reported++
	}
}

// tallies returns those of the last hour's windows, one after the other.
func (r *recent[K]) tallies(minute int64) []Tally[K] {
	all := make([]Tally[K], 0, windows*capacity)
	for i := range r.windows {
		w := &r.windows[i]
		if w.at <= minute/span-windows || w.at > minute/span {
			continue
		}
		for _, i := range w.heap {
			all = append(all, i.Tally)
		}
	}
	return all
}

// top sums up tallies of the same, and returns the n largest sums in order.
func top[K comparable](all []Tally[K], n int, compare func(a, b K) int) []Tally[K] {
	sums := make(map[K]Tally[K], len(all))
	for _, t := range all {
		sum := sums[t.Of]
		sums[t.Of] = Tally[K]{t.Of, sum.Denied + t.Denied, sum.Reported + t.Reported}
	}
	all = make([]Tally[K], 0, len(sums))
	for _, t := range sums {
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b Tally[K]) int {
		return cmp.Or(cmp.Compare(b.Denied+b.Reported, a.Denied+a.Reported), compare(a.Of, b.Of))
	})
	return all[:min(n, len(all))]
}

// A window is a sketch by the Filtered Space-Saving algorithm (Homem and Carvalho, 2010):
// what is new takes the place of what has come up least once it may have come up more
// often. How often it may have is counted together with others, in a cell that is found by
// its hash. Only these weights are estimates, which are never too low.
type window[K comparable] struct {
	at    int64 // the minute it begins with, by span
	index map[K]*item[K]
	heap  []*item[K] // the least weight in front
	cells [cells]uint64

	others item[K] // takes the counts of what is not kept apart, which nobody asks for
}

// cells are so many that where nothing comes up twice, seven of eight change nothing else.
const cells = 8 * capacity

var seed = maphash.MakeSeed()

// cell counts what is not kept apart, and what has been until something took its place.
func (w *window[K]) cell(key K) *uint64 { return &w.cells[maphash.Comparable(seed, key)%cells] }

type item[K comparable] struct {
	Tally[K]
	weight uint64
	place  int // in the heap
}

// take returns the item of a key, with its weight one more, or one for all that are not
// kept apart.
func (w *window[K]) take(key K, own func(K) K) *item[K] {
	i := w.index[key]
	switch {
	case i != nil:
	case len(w.heap) < capacity:
		i = &item[K]{Tally: Tally[K]{Of: own(key)}, place: len(w.heap)}
		w.heap = append(w.heap, i)
		w.index[i.Of] = i
		w.rise(i) // nothing weighs less
	default:
		c := w.cell(key)
		i = w.heap[0]
		if *c < i.weight {
			*c++
			return &w.others
		}
		delete(w.index, i.Of)
		*w.cell(i.Of) = i.weight
		i.Tally, i.weight = Tally[K]{Of: own(key)}, *c
		w.index[i.Of] = i
	}
	i.weight++
	w.sink(i)
	return i
}

func (w *window[K]) rise(i *item[K]) {
	for i.place > 0 {
		above := w.heap[(i.place-1)/2]
		if above.weight <= i.weight {
			return
		}
		w.swap(i, above)
	}
}

func (w *window[K]) sink(i *item[K]) {
	for {
		below := 2*i.place + 1
		if below >= len(w.heap) {
			return
		}
		least := w.heap[below]
		if below+1 < len(w.heap) && w.heap[below+1].weight < least.weight {
			least = w.heap[below+1]
		}
		if i.weight <= least.weight {
			return
		}
		w.swap(i, least)
	}
}

func (w *window[K]) swap(a, b *item[K]) {
	a.place, b.place = b.place, a.place
	w.heap[a.place], w.heap[b.place] = a, b
}
