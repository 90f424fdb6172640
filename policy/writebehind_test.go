package policy

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A diary remembers the digests that were saved, in order.
type diary struct {
	*durable
	mu    sync.Mutex
	err   error
	saved []string
}

func (d *diary) Save(records map[string]Record) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err != nil {
		return d.err
	}
	for _, r := range records {
		d.saved = append(d.saved, r.Good.SHA256)
	}
	return d.durable.Save(records)
}

// all returns what has been saved; what is saved again counts once.
func (d *diary) all() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Compact(slices.Clone(d.saved))
}

// answer is a record of one robots.txt.
func answer(text string, after Record) Record {
	s := &Snapshot{Status: 200, Fetched: time.Now()}
	s.setBody([]byte(text), 0)
	return after.with("", s)
}

// TestUnsaved: whatever has been decided by comes to be saved, in its order, however
// soon something else takes its place. What only adds to it replaces it.
func TestUnsaved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &diary{durable: newDurable()}
		c, err := newCache(1<<20, 0, d, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		defer c.close()
		const origin = "https://a.example"
		rec, want := Record{}, []string{}
		put := func(text string) {
			rec = answer(text, rec)
			c.put(origin, newEntry(rec, 0))
			want = append(want, Digest(text))
		}
		put("0")
		time.Sleep(10 * time.Millisecond) // it is saved at once; what follows waits
		for i := range 5 {
			put(fmt.Sprint(i + 1))
		}
		// One more crawler's answer takes nothing away.
		rec = rec.with("bot", &Snapshot{Status: 403, Fetched: time.Now()})
		c.put(origin, newEntry(rec, 0))
		time.Sleep(time.Second)
		if !slices.Equal(d.all(), want) {
			t.Errorf("saved %v, want %v", d.all(), want)
		}
		if n, _, counted := waiting(c); n != 0 || counted != 0 {
			t.Errorf("%d, %d bytes wait after the save", n, counted)
		}

		// So it is when the store has failed for a while.
		d.mu.Lock()
		d.err = errors.New("no space left on device")
		d.mu.Unlock()
		for i := range 5 {
			put(fmt.Sprint("full ", i))
			time.Sleep(time.Second)
		}
		d.mu.Lock()
		d.err = nil
		d.mu.Unlock()
		time.Sleep(time.Minute)
		if !slices.Equal(d.all(), want) {
			t.Errorf("saved %v, want %v", d.all(), want)
		}
	})
}

// TestUnsavedBound: while the store fails, what is superseded goes before what is in force.
func TestUnsavedBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &diary{durable: newDurable(), err: errors.New("no")}
		c, err := newCache(1<<20, 0, d, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		defer c.close()
		c.most = 100_000
		other := newEntry(answer("other", Record{}), 0)
		c.put("https://other.example", other)
		for i := range 1000 {
			c.put("https://a.example", newEntry(answer(fmt.Sprint(i), Record{}), 0))
			c.mu.RLock()
			if c.bytes > c.most || c.pending["https://other.example"] != other {
				t.Fatalf("after %d: %d bytes of %d wait", i, c.bytes, c.most)
			}
			c.mu.RUnlock()
		}
		d.mu.Lock()
		d.err = nil
		d.mu.Unlock()
	})
}
