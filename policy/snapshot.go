package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"iter"
	"maps"
	"net/http"
	"time"
	"unsafe"

	"robotsgate/policy/robotstxt"
)

// A Snapshot is one fetched robots.txt: what the origin answered, and when. A
// failure is a snapshot too, with no body.
type Snapshot struct {
	URL      string    `json:"url"`              // where the last redirect led
	Status   int       `json:"status"`           // 0: the origin gave no complete answer
	Error    string    `json:"error,omitempty"`  // why not
	Fetched  time.Time `json:"fetched"`          // when it was fetched, or last confirmed by a 304
	SHA256   string    `json:"sha256,omitempty"` // of the body, of a 2xx only
	Cut      bool      `json:"cut,omitempty"`    // the body was longer than Robots.MaxBytes
	Looped   bool      `json:"looped,omitempty"` // more redirects than Robots.MaxRedirects
	Varies   bool      `json:"varies,omitempty"` // by its Vary it depends on the User-Agent: it binds the crawler that asked only
	Others   bool      `json:"others,omitempty"` // it stands in for the answers to many crawlers, and denies whatever it is
	ETag     string    `json:"etag,omitempty"`
	Modified string    `json:"last_modified,omitempty"`

	// Lifetime is how long the origin says this holds, by Cache-Control or
	// Expires less its Age (RFC 9111, 4.2.1); negative: it does not say. Retry
	// is what its Retry-After says. The engine's own bounds are applied, and
	// one of the two chosen, when they are read, so that a change of
	// configuration holds for what is already stored.
	Lifetime time.Duration `json:"lifetime"`
	Retry    time.Duration `json:"retry_after,omitempty"`

	// Failures counts the failures in a row up to this one, Since is the first.
	Failures int       `json:"failures,omitempty"`
	Since    time.Time `json:"since,omitzero"`
}

// good reports whether the snapshot holds rules to obey.
func (s *Snapshot) good() bool { return s != nil && s.complete() && !s.Others }

// complete reports whether the origin sent its file. A 206 has a part of it only, and the gate
// asks for no part: the rules that are missing might be those that deny.
func (s *Snapshot) complete() bool {
	return s.Status >= 200 && s.Status <= 299 && s.Status != http.StatusPartialContent
}

// shared reports whether the snapshot speaks for the origin. Other statuses
// may be aimed at whoever asked: they bind that crawler only, so that one
// crawler's block neither opens nor closes the origin to the others. So does any answer
// that says that it varies.
func (s *Snapshot) shared() bool { return !s.Varies && !s.Others && (s.aboutFile() || s.Status == 0) }

// aboutFile reports whether the snapshot is an answer that says what the robots.txt is, or that
// there is none.
func (s *Snapshot) aboutFile() bool {
	return s.complete() || s.Looped || s.Status == http.StatusNotFound || s.Status == http.StatusGone
}

// setFile notes which body the snapshot is about. The digest names it as evidence.
func (s *Snapshot) setFile(file *robotstxt.File) {
	s.SHA256, s.Cut = Digest(file.Body()), file.Truncated()
}

// Digest names a body: its SHA-256 in lower-case hex.
func Digest(body string) string {
	sum := sha256.Sum256([]byte(body))
	return hex.EncodeToString(sum[:])
}

// A Record is what is known of one origin's robots.txt, for one [Scope].
type Record struct {
	Good *Snapshot `json:"good,omitempty"` // the last that held rules and is for all
	Last *Snapshot `json:"last,omitempty"` // the last that speaks for the origin; may be Good

	// By product token in lower case, as returned by [TokenKey]: the last answers that bind
	// that crawler only. Bound has those without rules, and one for others. Copies has
	// those with rules, without their bodies: each body is in a record of its own, whose
	// Scope has the Token. If a crawler has both, that in Bound is newer.
	Bound  map[string]*Snapshot `json:"bound,omitempty"`
	Copies map[string]*Snapshot `json:"copies,omitempty"`

	// Body is that of Good, decoded and cut at Robots.MaxBytes. Only stores have it: an Engine
	// leaves it out of the records that it returns.
	Body []byte `json:"body,omitempty"`

	// Refreshed is when the operator last asked for new copies of all: what was fetched
	// before no longer holds.
	Refreshed time.Time `json:"refreshed,omitzero"`
}

// Empty reports whether the record has no answer. To save such a record is to forget what is
// kept under its key.
func (r *Record) Empty() bool {
	return r.Good == nil && r.Last == nil && len(r.Bound) == 0 && len(r.Copies) == 0
}

// outdated reports whether new copies have been asked for since s was fetched. A failure is
// not outdated: its backoff protects the origin.
func (r *Record) outdated(s *Snapshot) bool {
	return s != nil && s.Fetched.Before(r.Refreshed) && s.aboutFile() && !s.Others
}

// newest returns the last answer to a crawler, its own or the origin's; nil
// without any.
func (r *Record) newest(token string) *Snapshot {
	if own := r.own(token); own != nil && (r.Last == nil || own.Fetched.After(r.Last.Fetched)) {
		return own
	}
	return r.Last
}

// own returns the last answer that binds the crawler with this token only, nil without any.
func (r *Record) own(token string) *Snapshot {
	if s := r.Bound[token]; s != nil {
		return s
	}
	return r.Copies[token]
}

// allOwn returns the last answer that binds one crawler only, for each of these.
func (r *Record) allOwn() iter.Seq2[string, *Snapshot] {
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
func (r *Record) copyFor(token string) *Snapshot {
	own := r.Copies[token]
	if own == nil || r.Good != nil && r.Good.Fetched.After(own.Fetched) {
		return r.Good
	}
	return own
}

// withoutCopy returns the record without the copy that binds one token.
func (r Record) withoutCopy(token string) Record {
	r.Copies = maps.Clone(r.Copies)
	delete(r.Copies, token)
	return r
}

// Size estimates the memory that the record holds, in bytes.
func (r *Record) Size() int {
	n := len(r.Body)
	for _, answers := range []map[string]*Snapshot{r.Bound, r.Copies} {
		for token, s := range answers {
			n += s.size() + 2*len(token) + 64
		}
	}
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

// with returns the record after one more fetch, for a product token or for
// others. Records are immutable: the caches hand them to many requests at once.
func (r Record) with(slot string, s *Snapshot) Record {
	bound := make(map[string]*Snapshot, len(r.Bound)+1)
	maps.Copy(bound, r.Bound)
	copies := maps.Clone(r.Copies)
	delete(bound, slot)
	switch {
	case s.shared():
		delete(bound, others) // they have an answer now
		if s.aboutFile() {
			delete(copies, slot)
		}
		r.Last = s
		if s.good() {
			r.Good = s
		}
	case s.good():
		if copies == nil {
			copies = map[string]*Snapshot{}
		}
		copies[slot] = s
	default:
		bound[slot] = s
	}
	if s.Varies && s.aboutFile() {
		// What was for all may have been meant for the crawler that brought it. The
		// others ask for themselves, and don't go by it in an outage either.
		r.Good, r.Last = nil, nil
	}
	r.Bound, r.Copies = orNil(bound), orNil(copies)
	return r
}

// orNil returns nil for an empty map: one for each origin would be much.
func orNil(m map[string]*Snapshot) map[string]*Snapshot {
	if len(m) == 0 {
		return nil
	}
	return m
}
