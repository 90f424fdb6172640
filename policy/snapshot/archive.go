package snapshot

import (
	"errors"
	"time"
)

// ErrChanged says that what is kept does not match the SHA-256 that names it.
var ErrChanged = errors.New("it has been changed: it does not hold what its name says")

// An Archive has the answers that a [Store] was given, also those that later ones have superseded, as
// evidence for past decisions. It may have dropped any of them, the oldest first.
type Archive interface {
	// History returns the answers of an origin to requests for its robots.txt, whichever clients they are for, by
	// the time at which they began. There are none of an origin that is not known.
	History(origin string) ([]Answer, error)
	// TDMRepHistory returns those to requests for its tdmrep.json.
	TDMRepHistory(origin string) ([]Answer, error)
	// Body returns a file of an origin by its SHA-256. The error is fs.ErrNotExist if it is not kept, and
	// ErrChanged if it does not match its name.
	Body(origin, digest string) (string, error)
	// HostOrigins returns the origins of a host, on all ports, of which there are answers. They are sorted.
	HostOrigins(host string) ([]string, error)
}

// An Answer is an origin's answer over some time: one snapshot, confirmed again and
// again. Of two at one time for an asker, the one with the later From is in force.
// A robots.txt may be obeyed as stale during failures.
type Answer struct {
	Asker    string    `json:"-"` // which it bound, see [Scope]
	From     time.Time `json:"from"`
	To       time.Time `json:"to,omitzero"` // when another took its place; zero: none has
	Snapshot *Snapshot `json:"snapshot"`    // of the last fetch
	Bytes    int64     `json:"-"`           // of its file, as it is kept
}

// A DatedSet is a set with the times at which its answers began, where that was before the last fetch.
// Stores that are archives keep it.
type DatedSet struct {
	Set
	From map[string]time.Time `json:"from,omitempty"` // by the names of answers
}

// InForce returns the answers that have not been superseded, by name. An answer supersedes the one
// with the same name.
func (r *DatedSet) InForce() map[string]Answer {
	all := map[string]Answer{}
	add := func(name string, s *Snapshot, bytes int) {
		from, ok := r.From[name]
		if !ok {
			from = s.Fetched
		}
		all[name] = Answer{From: from, Snapshot: s, Bytes: int64(bytes)}
	}
	if r.Good != nil {
		add("good", r.Good, len(r.Body))
	}
	if r.Last != nil && r.Last != r.Good {
		add("last", r.Last, 0)
	}
	return all
}

// Follow makes r the set after old. Answers that are the same keep their beginning. The others
// of old are returned, with their end.
func (r *DatedSet) Follow(old *DatedSet) (superseded []Answer) {
	now := r.InForce()
	for name, was := range old.InForce() {
		is, still := now[name]
		if still && sameAnswer(is.Snapshot, was.Snapshot) {
			if r.From == nil {
				r.From = map[string]time.Time{}
			}
			r.From[name] = was.From
			continue
		}
		if was.To = r.newestFetch(); still {
			was.To = is.Snapshot.Fetched
		} else if was.To.IsZero() { // the set is to be forgotten
			was.To = time.Now()
		}
		if was.To.Before(was.From) { // the clock was set back
			was.To = was.From
		}
		superseded = append(superseded, was)
	}
	return superseded
}

// sameAnswer reports whether two answers have the same meaning. The texts of errors are
// not compared: they may differ each time.
func sameAnswer(a, b *Snapshot) bool {
	return a.Status == b.Status && a.SHA256 == b.SHA256 && a.Cut == b.Cut && a.HTML == b.HTML && a.Looped == b.Looped
}

// newestFetch is the time of the last fetch.
func (r *Set) newestFetch() (t time.Time) {
	if last := r.last(); last != nil {
		t = last.Fetched
	}
	return t
}
