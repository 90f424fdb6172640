package policy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestTinyCache has many times more origins than ristretto has room for, and
// more than its queue takes at once: what it drops costs a parse, never a fetch.
func TestTinyCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 3000
		web := newOrigins()
		for i := range n {
			web.serve(fmt.Sprintf("https://%d.example/robots.txt", i), rules(fmt.Sprintf("User-agent: *\nDisallow: /%d/\n", i)))
		}
		r := defaults()
		r.CacheBytes = 10_000
		e := engineFor(t, r, web, newDurable(), io.Discard)
		defer e.Close()
		for round := range 4 {
			var wg sync.WaitGroup
			for i := range n {
				wg.Go(func() {
					d, err := e.Decide(t.Context(), asks(t, fmt.Sprintf("https://%d.example/%d/", i, i), "Bot/1.0"))
					if got := verdict(d, err); got != "deny rule fresh" {
						t.Errorf("round %d, origin %d: got %q", round, i, got)
					}
				})
			}
			wg.Wait()
			want := 0
			if round == 0 {
				want = n
			}
			if got := len(web.fetched()); got != want {
				t.Errorf("round %d: %d fetches, want %d", round, got, want)
			}
			time.Sleep(time.Duration(round) * 200 * time.Millisecond) // before and after it is saved
		}
	})
}

// TestNewest: of two Sets in a row ristretto can keep the first.
func TestNewest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := newCache(1<<20, 0, newDurable(), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		defer c.close()
		origin := func(i int) string { return fmt.Sprintf("https://%d.example", i) }
		for v := range 3 {
			for i := range 100 {
				s := &Snapshot{Status: 200, Fetched: time.Now()}
				s.setBody(fmt.Appendf(nil, "# %d", v), 0)
				c.put(origin(i), newEntry(Record{}.with("", s), 0))
			}
		}
		for when := range 3 {
			for i := range 100 {
				for how, get := range map[string]func(string) *entry{"quick": c.quick, "stored": c.stored, "load": c.load} {
					if e := get(origin(i)); e == nil || e.Good.Body != "# 2" {
						t.Fatalf("%s, time %d: got %+v, want the newest", how, when, e)
					}
				}
			}
			time.Sleep(time.Second)
		}
	})
}

// TestStoreFails: requests go on, the log is told once a minute, and nothing is
// lost when it works again.
func TestStoreFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web, s := newOrigins(), newDurable()
		web.serve(example, rules("User-agent: *\nDisallow: /\n"))
		s.err = errors.New("no space left on device")
		var log bytes.Buffer
		e := engineFor(t, defaults(), web, s, &log)
		r := asks(t, "https://example.com/", "Bot/1.0")
		for range 600 {
			if got, want := verdict(e.Decide(t.Context(), r)), "deny rule fresh"; got != want {
				t.Fatalf("got %q, want %q", got, want)
			}
			time.Sleep(time.Second)
		}
		e.Refresh(t.Context(), r)
		synctest.Wait()
		if n := strings.Count(log.String(), "no space left on device"); n < 9 || n > 11 {
			t.Errorf("said %d times in ten minutes, want 10", n)
		}
		if n := len(web.fetched()); n != 2 {
			t.Errorf("%d fetches, want 2", n)
		}
		s.mu.Lock()
		s.err = nil
		s.mu.Unlock()
		time.Sleep(6 * time.Second)
		if _, ok := s.Load("https://example.com"); !ok {
			t.Error("it is not saved although it can be")
		}
		e.Close()
	})
}

// TestPendingIsBounded in bytes while the store fails.
func TestPendingIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newDurable()
		s.err = errors.New("no")
		c, err := newCache(1<<20, 0, s, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		defer c.close()
		c.most = 1 << 20
		for i := range 1000 {
			snap := &Snapshot{Status: 200, Fetched: time.Now()}
			snap.setBody([]byte(strings.Repeat("#", 10_000)), 0)
			origin := fmt.Sprintf("https://%d.example", i%500)
			c.put(origin, newEntry(Record{}.with("", snap), 0))
			if n, sum, counted := waiting(c); sum != counted || sum > c.most || i > 200 && n < 90 {
				t.Fatalf("after %d: %d wait, %d bytes, %d counted, %d allowed", i, n, sum, counted, c.most)
			}
			if c.quick(origin) == nil {
				t.Fatal("the newest is lost")
			}
		}
		s.mu.Lock()
		s.err = nil
		s.mu.Unlock()
		time.Sleep(10 * time.Second)
		if n, _, counted := waiting(c); n != 0 || counted != 0 {
			t.Errorf("%d, %d bytes wait after the save", n, counted)
		}
	})
}

// waiting returns how many entries wait for the store, what they cost, and what
// is counted.
func waiting(c *cache) (n int, sum, counted int64) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for o, e := range c.pending {
		sum += e.cost(o)
	}
	return len(c.pending), sum, c.bytes
}

// TestCost wants memory to follow what entries say they cost.
func TestCost(t *testing.T) {
	if testing.Short() {
		t.Skip("it measures memory")
	}
	for name, record := range map[string]func(i int) Record{
		"rules": func(i int) Record {
			s := &Snapshot{URL: "https://example.com/robots.txt", Status: 200}
			var b strings.Builder
			for line := range 50 {
				fmt.Fprintf(&b, "User-agent: bot%d\nDisallow: /%d/%d\n", line, i, line)
			}
			s.setBody([]byte(b.String()), 0)
			return Record{}.with("", s)
		},
		"refusals": func(i int) Record {
			var rec Record
			for token := range maxBound {
				rec = rec.with(fmt.Sprintf("bot-%d", token), &Snapshot{
					URL: fmt.Sprintf("https://%d.example/robots.txt", i), Status: 503, Error: fmt.Sprintf("the origin answered %d", 500+i%2),
				})
			}
			return rec
		},
		"nothing": func(i int) Record {
			return Record{}.with("", &Snapshot{URL: fmt.Sprintf("https://%d.example/robots.txt", i), Status: 404})
		},
	} {
		const n = 2000
		entries := map[string]*entry{}
		before := heap()
		var cost int64
		for i := range n {
			origin := fmt.Sprintf("https://%d.example", i)
			e := newEntry(record(i), 0)
			entries[origin] = e
			cost += e.cost(origin)
		}
		used := heap() - before
		if ratio := float64(used) / float64(cost); ratio < 0.4 || ratio > 1.3 {
			t.Errorf("%s: %d bytes a piece in memory, %d by their cost", name, used/n, cost/n)
		}
		runtime.KeepAlive(entries)
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestCacheBytes is what the operator set, checked.
func TestCacheBytes(t *testing.T) {
	if _, err := New(Config{Robots: Robots{}, Store: newDurable(), Log: slog.New(slog.DiscardHandler)}); err == nil || !strings.Contains(err.Error(), "robots.cache_bytes") {
		t.Errorf("got %v, want an error that names the key", err)
	}
}

// BenchmarkDecide is the hot path: a rule of an origin that is in memory.
func BenchmarkDecide(b *testing.B) {
	web := newOrigins()
	var body strings.Builder
	body.WriteString("User-agent: *\n")
	for i := range 100 {
		fmt.Fprintf(&body, "Disallow: /section-%d/\n", i)
	}
	web.serve(example, rules(body.String()))
	e, err := New(Config{Robots: defaults(), Transport: web, Store: newDurable(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	target, _ := ParseURL("https://example.com/section-7/page?x=y")
	r := Request{Target: target, Crawler: &Crawler{Mode: Enforce}, UserAgent: "Mozilla/5.0 (compatible; ExampleBot/1.0)"}
	e.Decide(b.Context(), r)
	e.robots.cache.save(new(time.Time))
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if d, err := e.Decide(b.Context(), r); err != nil || d.Allow {
				b.Errorf("got %+v, %v", d, err)
			}
		}
	})
}

// TestRecordWith: what binds some crawlers only comes and goes with them, and a record that
// has been handed out stays as it is.
func TestRecordWith(t *testing.T) {
	good, denied := &Snapshot{Status: 200}, &Snapshot{Status: 403}
	bound := Record{}.with("abot", denied)
	several := bound.with("bbot", denied).with(others, denied)
	for _, step := range []struct {
		name  string
		got   Record
		last  *Snapshot
		slots []string
	}{
		{"first", bound, nil, []string{"abot"}},
		{"several", several, nil, []string{"abot", "bbot", others}},
		{"one of several is answered", several.with("abot", good), good, []string{"bbot"}},
		{"all are answered", bound.with("abot", good), good, nil},
		{"and one is not again", bound.with("abot", good).with("bbot", denied), good, []string{"bbot"}},
		{"never one", Record{}.with("abot", good), good, nil},
	} {
		if got := slices.Sorted(maps.Keys(step.got.Bound)); !slices.Equal(got, slices.Sorted(slices.Values(step.slots))) || step.got.Last != step.last {
			t.Errorf("%s: got %q and %+v, want %q and %+v", step.name, got, step.got.Last, step.slots, step.last)
		}
		if len(step.slots) == 0 && step.got.Bound != nil {
			t.Errorf("%s: an empty map is kept", step.name)
		}
	}
	if len(bound.Bound) != 1 || len(several.Bound) != 3 {
		t.Errorf("a record was changed: %v, %v", bound.Bound, several.Bound)
	}
}

// TestEntryIsFewParts: each is looked at by every collection of garbage.
func TestEntryIsFewParts(t *testing.T) {
	_, text := usual("a.example")
	rec := func() Record {
		s := &Snapshot{URL: "https://a.example/robots.txt", Status: 200, Body: text, SHA256: Digest(text), ETag: `"abc"`, Modified: "Sun, 06 Nov 1994 08:49:37 GMT"}
		for _, part := range []*string{&s.URL, &s.ETag, &s.Modified} { // as from a response
			*part = strings.Clone(*part)
		}
		return Record{}.with("abot", s)
	}
	const n = 1000
	kept := make([]*entry, n)
	objects := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapObjects)
	}
	before := objects()
	for i := range kept {
		kept[i] = newEntry(rec(), 1<<20)
	}
	if got := float64(objects()-before) / n; got > 6.5 {
		t.Errorf("an entry is %.1f parts, want 6", got)
	}
	runtime.KeepAlive(kept)
}
