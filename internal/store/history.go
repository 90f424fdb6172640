package store

import (
	"bytes"
	"encoding/json"
	"iter"
	"os"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"robotsgate/policy"
)

// maxAnswers is how many superseded answers an origin may have of each kind,
// with a body and without, so that failures don't push out rules. An origin
// that changes its robots.txt at every fetch, a day apart, has a year's.
const maxAnswers = 400

// An Answer is what an origin answered for some time: one snapshot, again and
// again. Of two at one time that hold for a crawler, the later From is in force;
// a robots.txt may serve as stale all through failures.
type Answer struct {
	Crawlers bool             `json:"-"`               // it decided for the configured crawlers; else for other clients
	Token    string           `json:"token,omitempty"` // it bound that crawler only, as in [policy.Record.Bound]
	From     time.Time        `json:"from"`
	To       time.Time        `json:"to,omitzero"` // when another took its place; zero: none has
	Snapshot *policy.Snapshot `json:"snapshot"`    // as it was fetched last; without its body
}

// History returns what an origin has answered, the oldest first.
func (d *Disk) History(origin string) (all []Answer, err error) {
	err = d.view(func(tx *bbolt.Tx) error {
		all, err = historyOf(tx, origin)
		return err
	})
	return all, err
}

func historyOf(tx *bbolt.Tx, origin string) (all []Answer, err error) {
	history, records := tx.Bucket(historyBucket), tx.Bucket(recordsBucket)
	if history == nil || records == nil {
		return nil, nil // it has just been begun
	}
	for _, crawlers := range []bool{false, true} {
		scope := policy.Scope{Origin: origin, Crawlers: crawlers}
		key := scope.Key()
		copies := []byte(key + " ") // how the keys of copies begin that bind one token
		for _, prefix := range [][]byte{[]byte(key + "\x00"), copies} {
			for at, sealed := range withPrefix(history, prefix) {
				a, err := openAnswer(at, sealed)
				if err != nil {
					return nil, err
				}
				all = append(all, a.under(at[:len(at)-historySuffix]))
			}
		}
		rows := map[string][]byte{}
		if sealed := records.Get([]byte(key)); sealed != nil {
			rows[key] = sealed
		}
		for at, sealed := range withPrefix(records, copies) {
			rows[string(at)] = sealed
		}
		for at, sealed := range rows {
			r, err := openRow([]byte(at), sealed)
			if err != nil {
				return nil, err
			}
			for _, a := range r.answers() {
				all = append(all, a.under([]byte(at)))
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Answer) int { return a.From.Compare(b.From) })
	return all, nil
}

// under returns the answer as one under the key of a scope.
func (a Answer) under(key []byte) Answer {
	s := policy.ParseKey(string(key))
	a.Crawlers = s.Crawlers
	if s.Token != "" {
		a.Token = s.Token
	}
	return a
}

// Length returns how long the body is that a digest names, in bytes; 0 if there is none.
func (d *Disk) Length(digest string) int64 {
	path, err := d.bodies.path(digest)
	if err != nil {
		return 0
	}
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// historySuffix is the length of what historyKey adds.
const historySuffix = 1 + 8 + 1

// historyKey sorts an origin's answers by when they began. The last byte is
// their kind.
func historyKey(origin string, a Answer) []byte {
	key := appendTime(append([]byte(origin), 0), a.From)
	if a.Snapshot.SHA256 != "" {
		return append(key, 'b')
	}
	return append(key, 'f')
}

// withPrefix returns the rows whose keys begin so.
func withPrefix(history *bbolt.Bucket, prefix []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(k, v []byte) bool) {
		c := history.Cursor()
		for k, v := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, v = c.Next() {
			if !yield(k, v) {
				return
			}
		}
	}
}

func openAnswer(key, sealed []byte) (a Answer, err error) {
	data, err := unseal(key, sealed)
	if err != nil {
		return a, err
	}
	return a, json.Unmarshal(data, &a)
}

// A row is what the index has under a key: its record, and since when it has
// been answering so where that is before the last fetch.
type row struct {
	policy.Record
	From map[string]time.Time `json:"from,omitempty"` // by the names of answers
}

// answers returns the answers that nothing has taken the place of, by names
// that tell which takes whose.
func (r *row) answers() map[string]Answer {
	all := map[string]Answer{}
	add := func(name, token string, s *policy.Snapshot) {
		from, ok := r.From[name]
		if !ok {
			from = s.Fetched
		}
		all[name] = Answer{Token: token, From: from, Snapshot: s}
	}
	if r.Good != nil {
		add("good", "", r.Good)
	}
	if r.Last != nil {
		add("last", "", r.Last)
	}
	for token, s := range r.Bound {
		add("bound "+token, token, s)
	}
	return all
}

// follow makes r the row after old. What goes on keeps its beginning, what has
// come to its end is returned.
func (r *row) follow(old row) (past []Answer) {
	now := r.answers()
	for name, was := range old.answers() {
		is, still := now[name]
		if still && sameAnswer(is.Snapshot, was.Snapshot) {
			if r.From == nil {
				r.From = map[string]time.Time{}
			}
			r.From[name] = was.From
			continue
		}
		if was.To = r.newest(); still {
			was.To = is.Snapshot.Fetched
		} else if was.To.IsZero() { // the row is to be forgotten
			was.To = time.Now()
		}
		if was.To.Before(was.From) { // the clock was set back
			was.To = was.From
		}
		past = append(past, was)
	}
	return past
}

// sameAnswer reports whether b says what a said. The words of an error are
// not looked at: they may differ each time.
func sameAnswer(a, b *policy.Snapshot) bool {
	return a.Status == b.Status && a.SHA256 == b.SHA256 && a.Cut == b.Cut && a.Looped == b.Looped && a.NoSlot == b.NoSlot
}

// newest is when the origin was last asked.
func (r *row) newest() (t time.Time) {
	for _, a := range r.answers() {
		if a.Snapshot.Fetched.After(t) {
			t = a.Snapshot.Fetched
		}
	}
	for _, s := range r.Copies { // they have rows of their own
		if s.Fetched.After(t) {
			t = s.Fetched
		}
	}
	return t
}

// digest names the body of the row, if it has one.
func (r *row) digest() string {
	if r.Good == nil {
		return ""
	}
	return r.Good.SHA256
}
