package store

import (
	"fmt"
	"testing"
	"time"

	"robotsgate/policy"
)

// TestUsage: the usage follows the records, also across a restart and while the disk
// is being written.
func TestUsage(t *testing.T) {
	dir := t.TempDir()
	limits := Limits{Keep: time.Hour, Bytes: 64 << 20}
	d := openFor(t, dir, limits)
	if u := d.Usage(); u.Origins != 0 || u.Bound != limits.Bytes {
		t.Errorf("empty: got %+v", u)
	}
	for n := range 3 {
		save(t, d, map[string]policy.Record{
			"http://same.example":               answered(robots(n, 9000)),
			fmt.Sprintf("http://%d.example", n): answered(robots(7, 100)),

			policy.Scope{Origin: "http://same.example", TDMRep: true}.Key(): answered(robots(n, 300)),
		})
	}
	before := d.Usage()
	if blocks, _ := onDisk(t, dir); before.Origins != 4 || before.Bytes < blocks/2 || before.Bytes > 2*blocks {
		t.Errorf("got %+v, want 4 origins and about %d bytes", before, blocks)
	}
	d.writing.Lock()
	if got := d.Usage(); got != before {
		t.Errorf("during a write: got %+v, want %+v", got, before)
	}
	d.writing.Unlock()
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}

	d = openFor(t, dir, Limits{Keep: time.Hour, Bytes: limits.Bytes})
	if got := d.Usage(); got.Origins != 4 || got.Bytes > 2*before.Bytes {
		t.Errorf("after a restart: got %+v, want %+v", got, before)
	}
	d.writing.Lock()
	err := d.changeLocked(func(c *change) { c.dropRecord([]byte("http://same.example")) })
	d.writing.Unlock()
	if got := d.Usage(); err != nil || got.Origins != 3 {
		t.Errorf("less one origin (%v): got %+v", err, got)
	}
}

func TestMemoryUsage(t *testing.T) {
	m := NewMemory(1 << 20)
	save(t, m, map[string]policy.Record{"http://a.example": answered(robots(1, 5000)), "http://b.example": answered("")})
	if u := m.Usage(); u.Origins != 2 || u.Bytes < 5000 || u.Bytes > 10_000 || u.Bound != 1<<20 {
		t.Errorf("got %+v", u)
	}
}
