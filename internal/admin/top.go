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
	// capacity is how many keys a window counts.
	capacity = 500
)

// recent finds the most frequent keys of the last hour.
type recent[K comparable] struct{ windows ring[window[K]] }

// add counts a denial in a minute.
func (r *recent[K]) add(minute int64, key K, enforced bool) {
	switch t := r.windows.of(minute / span).tally(key); {
	case t == nil:
	case enforced:
		t.Denied++
	default:
		t.Reported++
	}
}

// top adds up the tallies of each key in the last hour's windows, and returns the n largest sums in order: a denied
// request counts more than any number that report mode let through.
func (r *recent[K]) top(minute int64, n int, compare func(a, b K) int) []Tally[K] {
	sums := map[K]Tally[K]{}
	for _, w := range r.windows.until(minute/span, windows) {
		for key, t := range w {
			sum := sums[key]
			sums[key] = Tally[K]{key, sum.Denied + t.Denied, sum.Reported + t.Reported}
		}
	}
	all := slices.SortedFunc(maps.Values(sums), func(a, b Tally[K]) int {
		return cmp.Or(cmp.Compare(b.Denied, a.Denied), cmp.Compare(b.Reported, a.Reported), compare(a.Of, b.Of))
	})
	return all[:min(n, len(all))]
}

// A window has the tallies of the first keys that it counts, at most capacity.
type window[K comparable] map[K]*Tally[K]

// tally returns the tally of a key; nil if there are too many keys.
func (w *window[K]) tally(key K) *Tally[K] {
	t := (*w)[key]
	switch {
	case t != nil || len(*w) == capacity:
		return t
	case *w == nil:
		*w = window[K]{}
	}
	t = &Tally[K]{Of: key}
	(*w)[key] = t
	return t
}
