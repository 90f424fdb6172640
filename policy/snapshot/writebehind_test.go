package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A savedLog is a store that lists the digests that were saved, in order.
type savedLog struct {
	*durable
	mu    sync.Mutex
	err   error
	saved []string
	takes time.Duration
}

func (l *savedLog) Save(ctx context.Context, sets map[string]Set) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	time.Sleep(l.takes) // fake clock
	if l.err != nil {
		return l.err
	}
	for _, r := range sets {
		l.saved = append(l.saved, r.Good.SHA256)
	}
	return l.durable.Save(ctx, sets)
}

func (l *savedLog) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = err
}

func (l *savedLog) slow(takes time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.takes = takes
}

// all returns the digests that have been saved; one that is saved again counts once.
func (l *savedLog) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Compact(slices.Clone(l.saved))
}

// check compares the accounts with the queue.
func (w *writeBehind) check(t *testing.T) (waiting int) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	var sum int64
	newest := map[string]*unsaved{}
	for _, u := range w.queue {
		sum += u.cost()
		newest[u.key] = u
	}
	if sum != w.bytes || sum > w.maxBytes || !maps.Equal(newest, w.newest) {
		t.Fatalf("%d bytes wait, %d are counted, %d allowed; newest %v, want %v", sum, w.bytes, w.maxBytes, w.newest, newest)
	}
	return len(w.queue)
}

// TestWriteBehind: every answer is saved, in order, however soon another one takes its place. An entry
// that only adds to the one before replaces it.
func TestWriteBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, logged := &savedLog{durable: newDurable()}, new(bytes.Buffer)
		w := newWriteBehind(store, 1<<20, slog.New(slog.NewTextHandler(logged, nil)))
		defer w.close()
		const origin = "https://a.example"
		var e *entry
		want := []string{}
		add := func(text string) {
			e = newEntry("", fetched(200, text), 0)
			w.add(origin, e, nil)
			want = append(want, Digest(text))
		}
		add("0")
		time.Sleep(10 * time.Millisecond) // fake clock: it is saved at once; the next ones wait
		for i := range 5 {
			add(fmt.Sprint(i + 1))
		}
		if n := w.check(t); n != 5 {
			t.Errorf("%d wait, want 5", n)
		}
		w.add(origin, &entry{Set: e.add(&Snapshot{Status: 403, Fetched: time.Now()}), file: e.file}, nil)
		if n := w.check(t); n != 5 {
			t.Errorf("%d wait after an entry that adds an answer, want 5", n)
		}
		time.Sleep(time.Second) // fake clock
		if !slices.Equal(store.all(), want) {
			t.Errorf("saved %v, want %v", store.all(), want)
		}
		if n := w.check(t); n != 0 {
			t.Errorf("%d wait after the save", n)
		}

		store.fail(errors.New("no space left on device"))
		for i := range 5 {
			add(fmt.Sprint("full ", i))
			time.Sleep(time.Second) // fake clock
		}
		synctest.Wait()
		if err := w.failure(); err == nil || strings.Contains(logged.String(), "saved again") {
			t.Errorf("while the store fails: %v, and the log has\n%s", err, logged)
		}
		store.fail(nil)
		time.Sleep(time.Minute) // fake clock
		synctest.Wait()
		if err := w.failure(); err != nil || strings.Count(logged.String(), "snapshots are saved again") != 1 {
			t.Errorf("after the failure: %v, and the log has\n%s", err, logged)
		}
		if !slices.Equal(store.all(), want) {
			t.Errorf("after a failure: saved %v, want %v", store.all(), want)
		}
		if n := w.check(t); n != 0 {
			t.Errorf("%d wait after the second save", n)
		}
	})
}

// TestWriteBehindBound: while the store fails, the oldest entries are given up.
func TestWriteBehindBound(t *testing.T) {
	for cacheBytes, want := range map[int64]int64{64 << 20: 40 << 20, 256 << 20: 128 << 20} { // half, at least 40 MiB
		c, err := newCache(cacheBytes, 512<<10, newDurable(), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		if got := c.unsaved.maxBytes; got != want {
			t.Errorf("with a cache of %d bytes %d may wait to be saved, want %d", cacheBytes, got, want)
		}
		c.close()
	}
	synctest.Test(t, func(t *testing.T) {
		store := &savedLog{durable: newDurable(), err: errors.New("no")}
		w := newWriteBehind(store, 100_000, slog.New(slog.DiscardHandler))
		defer w.close()
		for i := range 1000 {
			key := fmt.Sprintf("https://%d.example", i%300)
			e := newEntry("", fetched(200, fmt.Sprint(i)), 0)
			w.add(key, e, nil)
			if n := w.check(t); i > 200 && n < 50 {
				t.Fatalf("after %d: %d wait", i, n)
			}
			if w.get(key) != e {
				t.Fatalf("after %d: the newest is lost", i)
			}
		}
		store.fail(nil)
		time.Sleep(time.Minute) // fake clock
		if n := w.check(t); n != 0 {
			t.Errorf("%d wait after the save", n)
		}
	})
}

// TestWriteBehindSaved: the callback comes after the first try to save, whether or not it succeeds.
func TestWriteBehindSaved(t *testing.T) {
	for _, err := range []error{nil, errors.New("no")} {
		synctest.Test(t, func(t *testing.T) {
			store := &savedLog{durable: newDurable(), err: err}
			w := newWriteBehind(store, 1<<20, slog.New(slog.DiscardHandler))
			defer w.close()
			calls := 0
			saved := func() {
				calls++
				if _, ok := store.Load(t.Context(), example); ok != (err == nil) {
					t.Errorf("store fails with %v: saved %v", err, ok)
				}
			}
			w.add(example, newEntry("", fetched(200, "x"), 0), saved)
			time.Sleep(time.Minute) // fake clock
			synctest.Wait()
			if calls != 1 {
				t.Errorf("store fails with %v: %d calls, want 1", err, calls)
			}
			store.fail(nil)
		})
	}
}

// TestSettle: settle returns when what was added before is saved, and at once while the store fails.
func TestSettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &savedLog{durable: newDurable()}
		w := newWriteBehind(store, 1<<20, slog.New(slog.DiscardHandler))
		defer w.close()
		add := func(text string) { w.add("https://"+text+".example", newEntry("", fetched(200, text), 0), nil) }
		for _, text := range []string{"a", "b", "c"} {
			add(text)
			w.settle(t.Context())
			if all := store.all(); !slices.Contains(all, Digest(text)) {
				t.Errorf("%s is not saved yet: %v", text, all)
			}
		}
		// In the middle of a slow save.
		store.slow(50 * time.Millisecond)
		time.Sleep(time.Second) // fake clock
		add("slow")
		time.Sleep(10 * time.Millisecond) // fake clock
		before := time.Now()
		w.settle(t.Context())
		if took := time.Since(before); took != 40*time.Millisecond {
			t.Errorf("it waits %v for a save that goes on for 40 ms", took)
		}
		store.slow(0)
		store.fail(errors.New("full"))
		add("d")
		time.Sleep(2 * saveInterval) // fake clock
		before = time.Now()
		w.settle(t.Context())
		if took := time.Since(before); took > 0 {
			t.Errorf("it waits %v for a store that fails", took)
		}
		store.fail(nil)
	})
}
