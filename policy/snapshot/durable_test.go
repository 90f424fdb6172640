package snapshot

import (
	"context"
	"encoding/json"
	"sync"
	"time"
)

// durable is a Store that outlives an engine. It keeps sets as JSON, so that times
// lose their monotonic part, as on a disk.
type durable struct {
	noStore
	mu    sync.Mutex
	rows  map[string][]byte
	err   error // of Save
	loads int
}

func newDurable() *durable { return &durable{rows: map[string][]byte{}} }

func (d *durable) Load(_ context.Context, key string) (set Set, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.loads++
	row, ok := d.rows[key]
	if !ok {
		return Set{}, false
	}
	if err := json.Unmarshal(row, &set); err != nil {
		panic(err)
	}
	if set.Good != nil && Digest(string(set.Body)) != set.Good.SHA256 {
		panic("body and digest disagree")
	}
	return set, true
}

func (d *durable) Save(_ context.Context, sets map[string]Set) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err != nil {
		return d.err
	}
	for key, set := range sets {
		if set.Empty() {
			delete(d.rows, key)
			continue
		}
		row, err := json.Marshal(set)
		if err != nil {
			panic(err)
		}
		d.rows[key] = row
	}
	return nil
}

// fetched returns the set of one answer to the request for a robots.txt, as a store keeps it.
func fetched(status int, body string) Set {
	now := time.Now()
	s := &Snapshot{URL: example, Status: status, Fetched: now, Since: now}
	set := Set{}.add(s)
	if s.good() {
		s.SHA256, set.Body = Digest(body), []byte(body)
	}
	return set
}
