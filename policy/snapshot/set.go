package snapshot

import (
	"cmp"
	"time"
	"unsafe"
)

// A Set has the snapshots of one origin's file, for one [Scope]: all that is known of it. It is immutable.
type Set struct {
	Good *Snapshot `json:"good,omitempty"` // the last answer with rules
	Last *Snapshot `json:"last,omitempty"` // the last answer, which decides; may be Good

	// Body is that of Good, decoded and cut at Settings.MaxBytes. Only stores have it: a Resolver
	// leaves it out of the sets that it returns.
	Body []byte `json:"body,omitempty"`

	// Refreshed is when the operator last asked for new copies: answers that were fetched
	// before are no longer valid.
	Refreshed time.Time `json:"refreshed,omitzero"`

	// Foreign says that a gate other than this one has saved some of the set: what this gate
	// decides by has to be in its own store too, so the Resolver saves it there.
	Foreign bool `json:"-"`
}

// Empty reports whether the set has no answer. A Store that is given such a set forgets
// the one under its key.
func (r *Set) Empty() bool { return r.Good == nil && r.Last == nil }

// outdated reports whether new copies have been asked for since s was fetched. A failure is
// not outdated: its backoff protects the origin.
func (r *Set) outdated(s *Snapshot) bool {
	return s != nil && s.Fetched.Before(r.Refreshed) && s.aboutFile()
}

// Size estimates the memory that the set holds, in bytes.
func (r *Set) Size() int {
	n := len(r.Body)
	if r.Good != nil {
		n += r.Good.size()
	}
	if r.Last != nil && r.Last != r.Good {
		n += r.Last.size()
	}
	return n
}

func (s *Snapshot) size() int {
	return int(unsafe.Sizeof(*s)) + len(s.URL) + len(s.Error) + len(s.SHA256) + len(s.ETag) + len(s.Modified)
}

// add returns the set with one more answer.
func (r Set) add(s *Snapshot) Set {
	r.Last = s
	if s.good() {
		r.Good = s
	}
	return r
}

// Merge returns what is known from two sets of the same scope, which two gates have made apart from
// each other: the newer of their answers. It is without Body. If both have an answer of the same time, that of a is taken.
// Learned says that it differs from a.
func Merge(a, b Set) (merged Set, learned bool) {
	if b.Empty() && !b.Refreshed.After(a.Refreshed) {
		a.Body = nil
		return a, false
	}
	m := Set{Good: newer(a.Good, b.Good), Last: newer(a.last(), b.last()), Refreshed: later(a.Refreshed, b.Refreshed)}
	return m, m.Good != a.Good || m.Last != a.last() || !m.Refreshed.Equal(a.Refreshed)
}

// last returns Last. A store may leave it out if it is Good.
func (r *Set) last() *Snapshot { return cmp.Or(r.Last, r.Good) }

// newer returns the snapshot that was fetched later; a, if at the same time.
func newer(a, b *Snapshot) *Snapshot {
	if a == nil || b != nil && b.Fetched.After(a.Fetched) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
