package snapshot

import (
	"context"
	"encoding/json"
	"sync"
	"time"
)

// durable is a Store that outlives an engine. It keeps records as JSON, so that times
// lose their monotonic part, as on a disk.
type durable struct {
	noStore
	mu    sync.Mutex
	rows  map[string][]byte
	err   error // of Save
	loads int
}

func newDurable() *durable { return &durable{rows: map[string][]byte{}} }

func (d *durable) Load(_ context.Context, key string) (rec Record, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.loads++
	row, ok := d.rows[key]
	if !ok {
		return Record{}, false
	}
	if err := json.Unmarshal(row, &rec); err != nil {
		panic(err)
	}
	if rec.Good != nil && Digest(string(rec.Body)) != rec.Good.SHA256 {
		panic("body and digest disagree")
	}
	return rec, true
}

func (d *durable) Save(_ context.Context, records map[string]Record) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err != nil {
		return d.err
	}
	for key, rec := range records {
		if rec.Empty() {
			delete(d.rows, key)
			continue
		}
		row, err := json.Marshal(rec)
		if err != nil {
			panic(err)
		}
		d.rows[key] = row
	}
	return nil
}

// fetched returns the record of one answer to the request for a robots.txt, as a store keeps it.
func fetched(status int, body string) Record {
	now := time.Now()
	s := &Snapshot{URL: example, Status: status, Fetched: now, Since: now}
	rec := Record{}.add("", s)
	if s.good() {
		s.SHA256, rec.Body = Digest(body), []byte(body)
	}
	return rec
}
