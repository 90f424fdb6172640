package snapshot

import (
	"cmp"
	"iter"
	"maps"
	"time"
	"unsafe"
)

// A Set has the snapshots of one origin's file, for one [Scope]: all that is known of it.
type Set struct {
	Good *Snapshot `json:"good,omitempty"` // the last answer for all crawlers that had rules
	Last *Snapshot `json:"last,omitempty"` // the last answer for all crawlers; may be Good

	// Bound has the last answers without rules that bind one crawler only, by its [Slot].
	// Under [NoSlot] of an entry it has the answer that its clients without a slot share.
	Bound map[string]*Snapshot `json:"bound,omitempty"`

	// Copies has the last answers with rules that bind one crawler only, by its Slot. The body
	// of each is in a set of its own, whose Scope has the Slot. If Bound has an answer to the
	// same crawler, that one is newer.
	Copies map[string]*Snapshot `json:"copies,omitempty"`

	// Body is that of Good, decoded and cut at Settings.MaxBytes. Only stores have it: a Resolver
	// leaves it out of the sets that it returns.
	Body []byte `json:"body,omitempty"`

	// Refreshed is when the operator last asked for new copies: answers that were fetched
	// before are no longer valid.
	Refreshed time.Time `json:"refreshed,omitzero"`

	// Superseded is for [Merge].
	Superseded *Superseded `json:"superseded,omitempty"`

	// Foreign says that a gate other than this one has saved some of the set: what this gate
	// decides by has to be in its own store too, so the Resolver saves it there.
	Foreign bool `json:"-"`
}

// Empty reports whether the set has no answer. A Store that is given such a set forgets
// the one under its key.
func (r *Set) Empty() bool {
	return r.Good == nil && r.Last == nil && len(r.Bound) == 0 && len(r.Copies) == 0
}

// outdated reports whether new copies have been asked for since s was fetched. A failure is
// not outdated: its backoff protects the origin.
func (r *Set) outdated(s *Snapshot) bool {
	return s != nil && s.Fetched.Before(r.Refreshed) && s.aboutFile() && !s.NoSlot
}

// newest returns the last answer to a crawler, its own or the origin's; nil
// without any.
func (r *Set) newest(slot string) *Snapshot {
	if own := r.own(slot); own != nil && (r.Last == nil || own.Fetched.After(r.Last.Fetched)) {
		return own
	}
	return r.Last
}

// own returns the last answer that binds the crawler with this slot only, nil without any.
func (r *Set) own(slot string) *Snapshot {
	return cmp.Or(r.Bound[slot], r.Copies[slot])
}

// apart reports whether the last answer bound one crawler only.
func (r *Set) apart() bool {
	for _, s := range r.allOwn() {
		if r.Last == nil || s.Fetched.After(r.Last.Fetched) {
			return true
		}
	}
	return false
}

// Answers returns the last answers of the origin, to all crawlers and to each that has its own.
func (r *Set) Answers() iter.Seq[*Snapshot] {
	return func(yield func(*Snapshot) bool) {
		for _, s := range []*Snapshot{r.Good, r.Last} {
			if s != nil && !yield(s) {
				return
			}
		}
		for _, s := range r.allOwn() {
			if !yield(s) {
				return
			}
		}
	}
}

// allOwn returns all last answers that bind one crawler only, by slot.
func (r *Set) allOwn() iter.Seq2[string, *Snapshot] {
	return func(yield func(string, *Snapshot) bool) {
		for t, s := range r.Bound {
			if !yield(t, s) {
				return
			}
		}
		for t, s := range r.Copies {
			if r.Bound[t] == nil && !yield(t, s) {
				return
			}
		}
	}
}

// copyFor returns the last good copy for a crawler, nil without any: its own, unless there is
// a newer one for all.
func (r *Set) copyFor(slot string) *Snapshot {
	own := r.Copies[slot]
	if own == nil || r.Good != nil && r.Good.Fetched.After(own.Fetched) {
		return r.Good
	}
	return own
}

// Size estimates the memory that the set holds, in bytes.
func (r *Set) Size() int {
	n := len(r.Body)
	for _, answers := range []map[string]*Snapshot{r.Bound, r.Copies} {
		for slot, s := range answers {
			n += s.size() + 2*len(slot) + 64
		}
	}
	if r.Good != nil {
		n += r.Good.size()
	}
	if r.Last != nil && r.Last != r.Good {
		n += r.Last.size()
	}
	if r.Superseded != nil {
		const each = 64
		n += each * (1 + len(r.Superseded.Brought) + len(r.Superseded.Failed))
	}
	return n
}

func (s *Snapshot) size() int {
	return int(unsafe.Sizeof(*s)) + len(s.URL) + len(s.Error) + len(s.SHA256) + len(s.ETag) + len(s.Modified)
}

// add returns the set with one more answer, which was fetched for the crawler with this slot, or
// under [NoSlot] for clients without one. It copies the maps: sets are immutable, since
// the caches pass them to many requests at once. Most have none.
func (r Set) add(slot string, s *Snapshot) Set {
	r.Bound, r.Copies = maps.Clone(r.Bound), maps.Clone(r.Copies)
	delete(r.Bound, slot)
	switch {
	case s.shared():
		maps.DeleteFunc(r.Bound, func(slot string, _ *Snapshot) bool { return isNoSlot(slot) }) // clients without a slot have an answer now
		if s.aboutFile() {
			delete(r.Copies, slot)
		}
		r.Last = s
		if s.good() {
			r.Good = s
		}
	case s.good():
		r.Copies = with(r.Copies, slot, s)
	default:
		r.Bound = with(r.Bound, slot, s)
	}
	if s.Varies && s.aboutFile() {
		// The answer for all may have been meant for the crawler that brought it. The
		// other crawlers fetch for themselves, and don't use it in an outage either.
		r.Good, r.Last = nil, nil
	}
	return r
}

// with adds a value to a map, which may be nil.
func with[V any](m map[string]V, key string, value V) map[string]V {
	if m == nil {
		m = map[string]V{}
	}
	m[key] = value
	return m
}
