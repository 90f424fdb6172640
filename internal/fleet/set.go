package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"robotsgate/policy/snapshot"
)

const (
	// maxSet bounds an encoded set: with its key, lease and clock it takes less than 4 KiB.
	maxSet = 3 << 10
	// maxText bounds the text of an error, which no decision depends on.
	maxText = 200
	// maxAge is the age of the oldest answer that a gate takes over.
	maxAge = 400 * 24 * time.Hour
)

// encode returns a set in JSON, without its body. Answers of this gate get its id. It returns nil if the result is
// longer than maxSet, or can't be JSON.
func (f *Fleet) encode(set snapshot.Set) []byte {
	set.Body = nil
	if set.Last == set.Good {
		set.Last = nil
	}
	set.Good, set.Last = f.signed(set.Good), f.signed(set.Last)
	text, err := json.Marshal(set)
	if err != nil || len(text) > maxSet {
		return nil // not representable, such as a year beyond 9999
	}
	return text
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

// decode returns an encoded set, without its body. It is an error if it has a time in the future
// or a value that no gate writes. Bounds such as robots.max_age are applied when it is used.
func (f *Fleet) decode(text []byte) (set snapshot.Set, err error) {
	if err := json.Unmarshal(text, &set); err != nil {
		return snapshot.Set{}, err
	}
	set.Body = nil
	if set.Last == nil {
		set.Last = set.Good
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
	if set.Good != nil {
		check(set.Good)
	}
	if set.Last != nil && set.Last != set.Good {
		check(set.Last)
	}
	if err == nil && set.Refreshed.After(now.Add(maxAhead)) {
		err = inFuture(set.Refreshed)
	}
	if err != nil {
		return snapshot.Set{}, err
	}
	return set, nil
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
