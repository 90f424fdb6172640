package snapshot

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// Superseded says which older answers of a set have been superseded, so that they do not come
// back when the set is merged with one of another gate that has not seen the newer ones. Only
// a Resolver with Config.Shared notes it.
type Superseded struct {
	Brought map[string]time.Time `json:"brought,omitempty"` // by slot: when the crawler last brought an answer about the file for all
	Failed  map[string]time.Time `json:"failed,omitempty"`  // by slot: when it last got no answer
	Varied  time.Time            `json:"varied,omitzero"`   // when an answer last said that there is none for all

	// Forgotten is the latest time that was dropped from the maps.
	Forgotten time.Time `json:"forgotten,omitzero"`
}

// slotName is the name of a slot in Superseded. A token may be as long as a User-Agent.
func slotName(slot string) string {
	const longest = 32
	if len(slot) > longest {
		return Digest(slot)[:longest]
	}
	return slot
}

// maxSuperseded bounds the slots in each map of Superseded. The latest are kept.
const maxSuperseded = 2 * maxBound

// note notes which answers s supersedes, which was fetched for the crawler with this slot.
func (r *Set) note(slot string, s *Snapshot) {
	slot = slotName(slot)
	next := *cmp.Or(r.Superseded, &Superseded{})
	slots := map[string]time.Time{slot: s.Fetched}
	switch {
	case s.shared() && s.aboutFile():
		next.Brought = next.latest(next.Brought, slots)
	case s.shared():
		next.Failed = next.latest(next.Failed, slots)
	case s.Varies && s.aboutFile():
		next.Varied = s.Fetched
	default:
		return
	}
	r.Superseded = &next
}

// latest returns the later time of each slot, of at most maxSuperseded slots.
func (s *Superseded) latest(a, b map[string]time.Time) map[string]time.Time {
	all := maps.Clone(a)
	for slot, at := range b {
		all = with(all, slot, later(all[slot], at))
	}
	for len(all) > maxSuperseded {
		s.drop(all)
	}
	return all
}

// Trim drops the oldest time, so that the set becomes shorter. It reports false if there is none.
// The maps must belong to the caller.
func (s *Superseded) Trim() bool {
	if len(s.Brought) < len(s.Failed) {
		return s.drop(s.Failed)
	}
	return s.drop(s.Brought)
}

func (s *Superseded) drop(all map[string]time.Time) bool {
	if len(all) == 0 {
		return false
	}
	oldest := slices.MinFunc(slices.Collect(maps.Keys(all)), func(a, b string) int { return cmp.Or(all[a].Compare(all[b]), cmp.Compare(a, b)) })
	s.Forgotten = later(s.Forgotten, all[oldest])
	delete(all, oldest)
	return true
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// Merge returns what is known from two sets of the same scope, which two gates have made apart from
// each other: what one gate would know that had got all their answers, in the order in which they
// were fetched. It is without Body. If both have an answer of the same time, that of a is taken.
// Learned says that it differs from a.
func Merge(a, b Set) (merged Set, learned bool) {
	if b.Empty() && !b.Refreshed.After(a.Refreshed) {
		a.Body = nil
		return a, false
	}
	m := Set{Refreshed: later(a.Refreshed, b.Refreshed), Superseded: mergeSuperseded(a.Superseded, b.Superseded)}
	s := cmp.Or(m.Superseded, &Superseded{})
	m.Good, m.Last = newer(a.Good, b.Good), newer(a.last(), b.last())
	if m.Good != nil && !m.Good.Fetched.After(s.Varied) {
		m.Good = nil
	}
	if m.Last != nil && !m.Last.Fetched.After(s.Varied) {
		m.Last = nil
	}
	m.Copies = mergeOwn(a.Copies, b.Copies, func(slot string, own *Snapshot) bool {
		return !s.Brought[slotName(slot)].Before(own.Fetched)
	})
	var forAll time.Time // the last answer for all crawlers, which is for those without a slot too
	for _, times := range []map[string]time.Time{s.Brought, s.Failed} {
		for _, at := range times {
			forAll = later(forAll, at)
		}
	}
	if m.Last != nil {
		forAll = later(forAll, m.Last.Fetched)
	}
	m.Bound = mergeOwn(a.Bound, b.Bound, func(slot string, own *Snapshot) bool {
		if name := slotName(slot); a.mayHaveSuperseded(slot, own) || b.mayHaveSuperseded(slot, own) ||
			!later(s.Brought[name], s.Failed[name]).Before(own.Fetched) {
			return true
		}
		var by time.Time
		if c := m.Copies[slot]; c != nil {
			by = later(by, c.Fetched)
		}
		if isNoSlot(slot) {
			by = later(by, forAll)
		}
		return !by.Before(own.Fetched)
	})
	return m, m.Good != a.Good || m.Last != a.last() || !maps.Equal(m.Bound, a.Bound) || !maps.Equal(m.Copies, a.Copies) || !m.Refreshed.Equal(a.Refreshed)
}

// mayHaveSuperseded reports whether the set may have lost the answer own, which is not in it, to a newer
// one for all crawlers, and does not say so: it was made by a gate alone, or knows only its last slots.
// An answer such as 403 allows everything, so it must not come back. One that denies may.
func (r *Set) mayHaveSuperseded(slot string, own *Snapshot) bool {
	last := r.last()
	if mine := r.Bound[slot]; mine != nil && mine.Fetched.Equal(own.Fetched) || own.Status < 400 || own.Status > 499 || own.NoSlot ||
		last == nil || !last.Fetched.After(own.Fetched) {
		return false
	}
	return r.Superseded == nil || r.Superseded.Forgotten.After(own.Fetched)
}

// last returns Last. A store may leave it out if it is Good.
func (r *Set) last() *Snapshot { return cmp.Or(r.Last, r.Good) }

func mergeSuperseded(a, b *Superseded) *Superseded {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	m := &Superseded{Varied: later(a.Varied, b.Varied), Forgotten: later(a.Forgotten, b.Forgotten)}
	m.Brought, m.Failed = m.latest(a.Brought, b.Brought), m.latest(a.Failed, b.Failed)
	return m
}

// newer returns the snapshot that was fetched later; a, if at the same time.
func newer(a, b *Snapshot) *Snapshot {
	if a == nil || b != nil && b.Fetched.After(a.Fetched) {
		return b
	}
	return a
}

// mergeOwn returns the newer answer of each slot, unless it is superseded.
func mergeOwn(a, b map[string]*Snapshot, superseded func(slot string, own *Snapshot) bool) map[string]*Snapshot {
	all := map[string]*Snapshot{}
	for _, own := range []map[string]*Snapshot{a, b} {
		for slot, s := range own {
			all[slot] = newer(all[slot], s)
		}
	}
	maps.DeleteFunc(all, superseded)
	if len(all) == 0 {
		return nil
	}
	return all
}
