package policy

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// Superseded says which older answers of a record have been superseded, so that they do not come
// back when the record is merged with one of another gate that has not seen the newer ones. Only
// an Engine with Config.Shared notes it.
type Superseded struct {
	Brought map[string]time.Time `json:"brought,omitempty"` // by slot: when the crawler last brought an answer about the file for all
	Failed  map[string]time.Time `json:"failed,omitempty"`  // by slot: when it last got no answer
	Varied  time.Time            `json:"varied,omitzero"`   // when an answer last said that there is none for all
}

// maxSuperseded bounds the slots in each map of Superseded. The latest are kept.
const maxSuperseded = 2 * maxBound

// note notes which answers s supersedes, which was fetched for the crawler with this slot.
func (r *Record) note(slot string, s *Snapshot) {
	next := Superseded{}
	if r.Superseded != nil {
		next = *r.Superseded
	}
	switch {
	case s.shared() && s.aboutFile():
		next.Brought = latest(next.Brought, map[string]time.Time{slot: s.Fetched})
	case s.shared():
		next.Failed = latest(next.Failed, map[string]time.Time{slot: s.Fetched})
	case s.Varies && s.aboutFile():
		next.Varied = s.Fetched
	default:
		return
	}
	r.Superseded = &next
}

// latest returns the later time of each slot, of at most maxSuperseded slots.
func latest(a, b map[string]time.Time) map[string]time.Time {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]time.Time{}
	}
	for slot, at := range b {
		all[slot] = later(all[slot], at)
	}
	for len(all) > maxSuperseded {
		oldest := slices.MinFunc(slices.Collect(maps.Keys(all)), func(a, b string) int { return cmp.Or(all[a].Compare(all[b]), cmp.Compare(a, b)) })
		delete(all, oldest)
	}
	return all
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// Merge returns what is known from two records of the same scope, which two gates have made apart from
// each other: what one gate would know that had got all their answers, in the order in which they
// were fetched. It is without Body. If both have an answer of the same time, that of a is taken.
// Learned says that it differs from a.
func Merge(a, b Record) (merged Record, learned bool) {
	if b.Empty() && !b.Refreshed.After(a.Refreshed) {
		a.Body = nil
		return a, false
	}
	m := Record{Refreshed: later(a.Refreshed, b.Refreshed)}
	s := mergeSuperseded(a.Superseded, b.Superseded)
	if s != nil {
		m.Superseded = s
	} else {
		s = &Superseded{}
	}
	m.Good, m.Last = newer(a.Good, b.Good), newer(a.last(), b.last())
	if m.Good != nil && !m.Good.Fetched.After(s.Varied) {
		m.Good = nil
	}
	if m.Last != nil && !m.Last.Fetched.After(s.Varied) {
		m.Last = nil
	}
	m.Copies = mergeOwn(a.Copies, b.Copies, func(slot string, own *Snapshot) bool {
		return !s.Brought[slot].Before(own.Fetched)
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
		by := later(s.Brought[slot], s.Failed[slot])
		if c := m.Copies[slot]; c != nil {
			by = later(by, c.Fetched)
		}
		if slot == NoSlot {
			by = later(by, forAll)
		}
		return !by.Before(own.Fetched)
	})
	return m, m.Good != a.Good || m.Last != a.last() || !maps.Equal(m.Bound, a.Bound) || !maps.Equal(m.Copies, a.Copies) || !m.Refreshed.Equal(a.Refreshed)
}

// last returns Last. A store may leave it out if it is Good.
func (r *Record) last() *Snapshot { return cmp.Or(r.Last, r.Good) }

func mergeSuperseded(a, b *Superseded) *Superseded {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	return &Superseded{Brought: latest(a.Brought, b.Brought), Failed: latest(a.Failed, b.Failed), Varied: later(a.Varied, b.Varied)}
}

// newer returns the snapshot that was fetched later; a, if at the same time.
func newer(a, b *Snapshot) *Snapshot {
	if a == nil || b != nil && b.Fetched.After(a.Fetched) {
		return b
	}
	return a
}

// mergeOwn returns the newer answer of each slot, without those that are superseded.
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
