package policy

import (
	"encoding/json"
	"sync"
	"time"
)

// durable is a Store that outlives an engine. It keeps what a disk would: the
// times lose their monotonic part, bodies are kept by their digest.
type durable struct {
	mu     sync.Mutex
	rows   map[string][]byte
	bodies map[string]string
	err    error // of Save
	loads  int
}

func newDurable() *durable {
	return &durable{rows: map[string][]byte{}, bodies: map[string]string{}}
}

func (d *durable) Load(origin string) (rec Record, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.loads++
	row, ok := d.rows[origin]
	if !ok {
		return Record{}, false
	}
	if err := json.Unmarshal(row, &rec); err != nil {
		panic(err)
	}
	if rec.Good != nil {
		rec.Good.Body = d.bodies[rec.Good.SHA256]
		if Digest(rec.Good.Body) != rec.Good.SHA256 {
			panic("body and digest disagree")
		}
	}
	if rec.Last == nil {
		rec.Last = rec.Good
	}
	return rec, true
}

func (d *durable) Save(records map[string]Record) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err != nil {
		return d.err
	}
	for origin, rec := range records {
		if rec.Good != nil {
			d.bodies[rec.Good.SHA256] = rec.Good.Body
		}
		if rec.Last == rec.Good {
			rec.Last = nil
		}
		row, err := json.Marshal(rec)
		if err != nil {
			panic(err)
		}
		d.rows[origin] = row
	}
	return nil
}

// shift makes all that is kept come from a clock that was ahead.
func (d *durable) shift(by time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for origin, row := range d.rows {
		var rec Record
		if err := json.Unmarshal(row, &rec); err != nil {
			panic(err)
		}
		for _, s := range []*Snapshot{rec.Good, rec.Last} {
			if s != nil {
				s.Fetched = s.Fetched.Add(by)
			}
		}
		d.rows[origin], _ = json.Marshal(rec)
	}
}
