package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"robotsgate/policy/snapshot"
)

const (
	// maxRecord bounds an encoded record: with its key, lease and clock it takes less than 4 KiB.
	maxRecord = 3 << 10
	// maxText bounds the text of an error, which no decision depends on.
	maxText = 200
	// maxAge is the age of the oldest answer that a gate takes over.
	maxAge = 400 * 24 * time.Hour
)

// encode returns a record in JSON, without its body. Answers of this gate get its id. If the result is
// longer than maxRecord, encode leaves out the oldest answers that bind one crawler only, and the oldest
// entries of Superseded. It returns nil if the result is still too long, or can't be JSON.
func (f *Fleet) encode(rec snapshot.Record) []byte {
	rec.Body = nil
	if rec.Last == rec.Good {
		rec.Last = nil
	}
	rec.Good, rec.Last = f.signed(rec.Good), f.signed(rec.Last)
	rec.Bound, rec.Copies = f.allSigned(rec.Bound), f.allSigned(rec.Copies)
	if s := rec.Superseded; s != nil {
		rec.Superseded = &snapshot.Superseded{Brought: maps.Clone(s.Brought), Failed: maps.Clone(s.Failed), Varied: s.Varied, Forgotten: s.Forgotten}
	}
	for {
		text, err := json.Marshal(rec)
		if err != nil {
			return nil // not representable, such as a year beyond 9999
		}
		if len(text) <= maxRecord {
			return text
		}
		dropped := dropOldest(rec.Bound, rec.Copies)
		if rec.Superseded != nil && rec.Superseded.Trim() {
			dropped = true
		}
		if !dropped {
			return nil
		}
	}
}

// signed returns a snapshot with the id of the gate that has fetched it.
func (f *Fleet) signed(s *snapshot.Snapshot) *snapshot.Snapshot {
	if s == nil {
		return nil
	}
	own := *s
	if own.By == "" {
		own.By = f.gate
	}
	own.Error = own.Error[:min(len(own.Error), maxText)]
	return &own
}

func (f *Fleet) allSigned(all map[string]*snapshot.Snapshot) map[string]*snapshot.Snapshot {
	all = maps.Clone(all)
	for token, s := range all {
		all[token] = f.signed(s)
	}
	return all
}

// dropOldest removes the oldest answer from the maps, and reports whether there was one.
func dropOldest(all ...map[string]*snapshot.Snapshot) bool {
	var from map[string]*snapshot.Snapshot
	var oldest string
	for _, m := range all {
		for _, token := range slices.Sorted(maps.Keys(m)) {
			if from == nil || m[token].Fetched.Before(from[oldest].Fetched) {
				from, oldest = m, token
			}
		}
	}
	delete(from, oldest)
	return from != nil
}

// decode returns an encoded record, without its body. It is an error if it has a time in the future
// or a value that no gate writes. Bounds such as robots.max_age are applied when it is used.
func (f *Fleet) decode(text []byte) (rec snapshot.Record, err error) {
	if err := json.Unmarshal(text, &rec); err != nil {
		return snapshot.Record{}, err
	}
	rec.Body = nil
	if rec.Last == nil {
		rec.Last = rec.Good
	}
	now := f.now()
	check := func(s *snapshot.Snapshot) {
		if err == nil {
			err = invalid(s, now)
		}
		if s != nil && s.By == f.gate {
			s.By = ""
		}
	}
	if rec.Good != nil {
		check(rec.Good)
	}
	if rec.Last != nil && rec.Last != rec.Good {
		check(rec.Last)
	}
	for _, m := range []map[string]*snapshot.Snapshot{rec.Bound, rec.Copies} {
		for _, s := range m {
			check(s)
		}
	}
	latest := rec.Refreshed
	if s := rec.Superseded; s != nil {
		times := slices.Concat(slices.Collect(maps.Values(s.Brought)), slices.Collect(maps.Values(s.Failed)), []time.Time{s.Varied, s.Forgotten, latest})
		latest = slices.MaxFunc(times, time.Time.Compare)
	}
	if err == nil && latest.After(now.Add(maxAhead)) {
		err = inFuture(latest)
	}
	if err != nil {
		return snapshot.Record{}, err
	}
	return rec, nil
}

// invalid returns an error if no gate can have made the snapshot.
func invalid(s *snapshot.Snapshot, now time.Time) error {
	switch {
	case s == nil:
		return errors.New("an answer is empty")
	case s.Fetched.After(now.Add(maxAhead)):
		return inFuture(s.Fetched)
	case s.Since.After(now.Add(maxAhead)):
		return inFuture(s.Since)
	case s.Fetched.Before(now.Add(-maxAge)):
		return fmt.Errorf("an answer is of %s, which is too long ago", s.Fetched.UTC().Format(time.RFC3339))
	case s.Status < 0 || s.Status > 999 || s.Failures < 0 || s.Retry < 0:
		return errors.New("a number of an answer is out of bounds")
	}
	return nil
}

func inFuture(at time.Time) error {
	return fmt.Errorf("a time is in the future: %s; check the clocks of the gates", at.UTC().Format(time.RFC3339))
}
