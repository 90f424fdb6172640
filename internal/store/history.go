package store

import (
	"bytes"
	"iter"
	"os"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"robotsgate/policy"
)

// maxAnswers is how many superseded answers a scope may have of each kind,
// with a body and without, so that failures don't push out rules. An origin
// that changes its robots.txt at every fetch, a day apart, has a year's.
const maxAnswers = 400

// An Answer is an origin's answer over some time: one snapshot, confirmed again and
// again. Of two at one time that bind a crawler, the one with the later From is in force.
// A robots.txt may be obeyed as stale during failures.
type Answer struct {
	Crawlers bool             `json:"-"`               // it decided for the configured crawlers; else for other clients
	Slot     string           `json:"token,omitempty"` // it bound only the crawler with this [policy.Slot]; empty: all
	From     time.Time        `json:"from"`
	To       time.Time        `json:"to,omitzero"` // when another took its place; zero: none has
	Snapshot *policy.Snapshot `json:"snapshot"`    // of the last fetch
}

// History returns the answers of an origin to requests for its robots.txt, the oldest first.
func (d *Disk) History(origin string) (all []Answer, err error) {
	return d.history(policy.Scope{Origin: origin})
}

// TDMRepHistory returns those to requests for its tdmrep.json.
func (d *Disk) TDMRepHistory(origin string) (all []Answer, err error) {
	return d.history(policy.Scope{Origin: origin, TDMRep: true})
}

func (d *Disk) history(file policy.Scope) (all []Answer, err error) {
	err = d.view(func(tx *bbolt.Tx) error {
		all, err = historyOf(tx, file)
		return err
	})
	return all, err
}

// historyOf returns the answers about a file, whichever clients they are for.
func historyOf(tx *bbolt.Tx, file policy.Scope) (all []Answer, err error) {
	history, records := tx.Bucket(historyBucket), tx.Bucket(recordsBucket)
	if history == nil || records == nil {
		return nil, nil // the index is new
	}
	for _, crawlers := range []bool{false, true} {
		scope := policy.Scope{Origin: file.Origin, TDMRep: file.TDMRep, Crawlers: crawlers}
		key := scope.Key()
		copies := []byte(key + " ") // begins the keys of copies that bind one crawler
		for _, prefix := range [][]byte{[]byte(key + "\x00"), copies} {
			for at, value := range withPrefix(history, prefix) {
				a, err := unmarshal[Answer](at, value)
				if err != nil {
					return nil, err
				}
				all = append(all, a.withScope(at[:len(at)-historySuffix]))
			}
		}
		rows := map[string][]byte{}
		if value := records.Get([]byte(key)); value != nil {
			rows[key] = value
		}
		for at, value := range withPrefix(records, copies) {
			rows[string(at)] = value
		}
		for at, value := range rows {
			r, err := unmarshal[row]([]byte(at), value)
			if err != nil {
				return nil, err
			}
			for _, a := range r.answers() {
				all = append(all, a.withScope([]byte(at)))
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Answer) int { return a.From.Compare(b.From) })
	return all, nil
}

// withScope returns the answer with the scope that a key names.
func (a Answer) withScope(key []byte) Answer {
	s := policy.ParseKey(string(key))
	a.Crawlers = s.Crawlers
	if s.Slot != "" {
		a.Slot = s.Slot
	}
	return a
}

// Body returns the file that a digest names. The error is fs.ErrNotExist if it is not kept, and
// ErrChanged if it does not match its name.
func (d *Disk) Body(digest string) (string, error) {
	data, err := d.bodies.read(digest)
	return string(data), err
}

// Length returns the length of the body with a digest, in bytes; 0 if there is none.
func (d *Disk) Length(digest string) int64 {
	path, _ := d.bodies.path(digest)
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// withPrefix returns the rows with keys that begin with prefix.
func withPrefix(b *bbolt.Bucket, prefix []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(k, v []byte) bool) {
		c := b.Cursor()
		for k, v := c.Seek(prefix); k != nil && bytes.HasPrefix(k, prefix); k, v = c.Next() {
			if !yield(k, v) {
				return
			}
		}
	}
}

// A row is the value under a key of the index: a record without its body, and the beginnings of
// its answers, where they are before the last fetch.
type row struct {
	policy.Record
	From map[string]time.Time `json:"from,omitempty"` // by the names of answers
}

// answers returns the answers that have not been superseded, by name. An answer supersedes the one
// with the same name.
func (r *row) answers() map[string]Answer {
	all := map[string]Answer{}
	add := func(name, slot string, s *policy.Snapshot) {
		from, ok := r.From[name]
		if !ok {
			from = s.Fetched
		}
		all[name] = Answer{Slot: slot, From: from, Snapshot: s}
	}
	if r.Good != nil {
		add("good", "", r.Good)
	}
	if r.Last != nil {
		add("last", "", r.Last)
	}
	for slot, s := range r.Bound {
		add("bound "+slot, slot, s)
	}
	return all
}

// follow makes r the row after old. Answers that are the same keep their beginning. The others
// of old are returned, with their end.
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
		} else if was.To.IsZero() { // the record is to be forgotten
			was.To = time.Now()
		}
		if was.To.Before(was.From) { // the clock was set back
			was.To = was.From
		}
		past = append(past, was)
	}
	return past
}

// sameAnswer reports whether two answers have the same meaning. The texts of errors are
// not compared: they may differ each time.
func sameAnswer(a, b *policy.Snapshot) bool {
	return a.Status == b.Status && a.SHA256 == b.SHA256 && a.Cut == b.Cut && a.Looped == b.Looped && a.NoSlot == b.NoSlot
}

// newest is the time of the last fetch.
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
