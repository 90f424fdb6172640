package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"robotsgate/policy"
)

var ample = Limits{Keep: 1000 * time.Hour, Bytes: 1 << 30}

// openFor returns a store with these limits; it is closed at the end of the test. A warning fails the test.
func openFor(t *testing.T, dir string, limits Limits) *Disk {
	t.Helper()
	d, log := openLogged(t, dir, limits)
	t.Cleanup(func() {
		if log.Len() > 0 {
			t.Errorf("log: %s", log)
		}
	})
	return d
}

// openLogged returns a store and what it logs.
func openLogged(t *testing.T, dir string, limits Limits) (*Disk, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	d, err := Open(dir, limits, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d, &log
}

// answered returns the record of an origin that has just answered with a body.
func answered(body string) policy.Record {
	s := &policy.Snapshot{Status: 200, Fetched: time.Now(), SHA256: policy.Digest(body)}
	return policy.Record{Good: s, Last: s, Body: []byte(body)}
}

// down returns rec after its origin has just failed.
func down(rec policy.Record, status int) policy.Record {
	rec.Last = &policy.Snapshot{Status: status, Error: fmt.Sprint(time.Now()), Fetched: time.Now()}
	return rec
}

func save(t *testing.T, s policy.Store, records map[string]policy.Record) {
	t.Helper()
	if err := s.Save(t.Context(), records); err != nil {
		t.Fatal(err)
	}
}

// loaded fails the test if a record is not found as it was saved.
func loaded(t *testing.T, s policy.Store, key string, want policy.Record) {
	t.Helper()
	got, ok := s.Load(t.Context(), key)
	if !ok {
		t.Errorf("%s is not found", key)
	} else if err := same(got, want); err != nil {
		t.Errorf("%s: %v", key, err)
	}
}

func same(got, want policy.Record) error {
	a, _ := json.Marshal(got)
	b, _ := json.Marshal(want)
	if !bytes.Equal(a, b) {
		return fmt.Errorf("got %s, want %s", a, b)
	}
	return nil
}
