package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/internal/gatetest"
)

// TestTinyCache has many times more origins than there is room for in memory. An
// origin that is dropped costs a parse, never a fetch.
func TestTinyCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 3000
		web := newOrigins()
		for i := range n {
			web.Serve(fmt.Sprintf("https://%d.example/robots.txt", i), rules(fmt.Sprintf("User-agent: *\nDisallow: /%d/\n", i)))
		}
		r := defaults()
		r.CacheBytes = 10_000
		e := engineFor(t, r, web, newDurable(), io.Discard)
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
			if got := len(web.Fetched()); got != want {
				t.Errorf("round %d: %d fetches, want %d", round, got, want)
			}
			time.Sleep(time.Duration(round) * 200 * time.Millisecond) // fake clock: before and after it is saved
		}
	})
}

// TestNewest: the entry that was put last is found, before it is saved and after.
func TestNewest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newDurable()
		c, err := newCache(1<<20, 0, store, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		defer c.close()
		origin := func(i int) string { return fmt.Sprintf("https://%d.example", i) }
		for v := range 3 {
			for i := range 100 {
				c.put(origin(i), newEntry("", fetched(200, fmt.Sprintf("# %d", v)), 0), nil)
			}
		}
		for when := range 3 {
			for i := range 100 {
				if e := c.get(origin(i)); e == nil || e.file.Body() != "# 2" {
					t.Fatalf("time %d: got %+v, want the newest", when, e)
				}
			}
			time.Sleep(time.Second) // fake clock
		}
		for i := range 100 {
			if e := c.read(t.Context(), origin(i)); e == nil || e.file.Body() != "# 2" {
				t.Fatalf("in the store: got %+v, want the newest", e)
			}
		}
	})
}

// TestStoreFails: requests are decided as before, the failure is logged once a minute, and
// no set is lost when the store works again.
func TestStoreFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web, s := newOrigins(), newDurable()
		web.Serve(example, rules("User-agent: *\nDisallow: /\n"))
		s.err = errors.New("no space left on device")
		var log bytes.Buffer
		e := engineFor(t, defaults(), web, s, &log)
		r := asks(t, "https://example.com/", "Bot/1.0")
		for range 600 {
			if got, want := verdict(e.Decide(t.Context(), r)), "deny rule fresh"; got != want {
				t.Fatalf("got %q, want %q", got, want)
			}
			time.Sleep(time.Second) // fake clock
		}
		e.Refresh(t.Context(), r)
		synctest.Wait()
		if n := strings.Count(log.String(), "no space left on device"); n < 9 || n > 11 {
			t.Errorf("%d lines in the log in ten minutes, want 10", n)
		}
		if n := len(web.Fetched()); n != 2 {
			t.Errorf("%d fetches, want 2", n)
		}
		s.mu.Lock()
		s.err = nil
		s.mu.Unlock()
		time.Sleep(6 * time.Second) // fake clock
		if _, ok := s.Load(t.Context(), "https://example.com robotsgate/0"); !ok {
			t.Error("it is not saved although it can be")
		}
	})
}

// TestCost compares the memory of entries with their cost.
func TestCost(t *testing.T) {
	tdmrep := func(entries int) func(i int) Set {
		return func(i int) Set {
			var b strings.Builder
			for n := range entries {
				fmt.Fprintf(&b, `%c{"location": "/%d/%d*", "tdm-reservation": 1, "tdm-policy": "https://a.example/%d"}`, "[,"[min(n, 1)], i, n, i)
			}
			return fetched(200, b.String()+"]")
		}
	}
	for name, set := range map[string]func(i int) Set{
		"tdmrep one":  tdmrep(1),
		"tdmrep many": tdmrep(100),
		"rules": func(i int) Set {
			var b strings.Builder
			for line := range 50 {
				fmt.Fprintf(&b, "User-agent: bot%d\nDisallow: /%d/%d\n", line, i, line)
			}
			return fetched(200, b.String())
		},
		"refusals": func(i int) Set {
			return Set{}.add(&Snapshot{
				URL: fmt.Sprintf("https://%d.example/robots.txt", i), Status: 503, Error: fmt.Sprintf("the origin answered %d", 500+i%2),
			})
		},
		"nothing": func(i int) Set {
			return Set{}.add(&Snapshot{URL: fmt.Sprintf("https://%d.example/robots.txt", i), Status: 404})
		},
	} {
		n := gatetest.Rounds(2000)
		entries := map[string]*entry{}
		before := gatetest.Heap()
		var cost int64
		for i := range n {
			key := Scope{Origin: fmt.Sprintf("https://%d.example", i), TDMRep: strings.HasPrefix(name, "tdmrep")}.Key()
			e := newEntry(key, set(i), 0)
			entries[key] = e
			cost += e.cost(key)
		}
		used := gatetest.Heap() - before
		if ratio := float64(used) / float64(cost); ratio < 0.4 || ratio > 1.3 {
			t.Errorf("%s: %d bytes a piece in memory, %d by their cost", name, used/int64(n), cost/int64(n))
		}
		t.Logf("%s: %.2f of the cost", name, float64(used)/float64(cost))
		runtime.KeepAlive(entries)
	}
}
