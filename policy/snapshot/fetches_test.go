package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/policy/internal/origintest"
)

// byCrawler gives each named crawler its own answer, and all others a common one.
func byCrawler(common func(*http.Request) (*http.Response, error), named map[string]string) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		name, _, _ := strings.Cut(r.Header.Get("User-Agent"), "/")
		if text, ok := named[name]; ok {
			return raw(text)(r)
		}
		return common(r)
	}
}

const (
	forbidden   = "HTTP/1.1 403 Forbidden\n\n"
	tooMany     = "HTTP/1.1 429 Too Many Requests\n\n"
	unavailable = "HTTP/1.1 503 Service Unavailable\n\n"
)

// bot returns a different User-Agent for each number.
func bot(i int) string {
	return "Bot-" + strings.NewReplacer("0", "a", "1", "b", "2", "c", "3", "d", "4", "e", "5", "f", "6", "g", "7", "h", "8", "i", "9", "j").Replace(fmt.Sprint(i)) + "/1.0"
}

// atOnce decides for n crawlers at once, and returns the longest wait
// and the number of each verdict.
func atOnce(t *testing.T, e *engine, n int) (longest time.Duration, verdicts map[string]int) {
	t.Helper()
	var wg sync.WaitGroup
	var mu sync.Mutex
	verdicts = map[string]int{}
	begun := time.Now()
	for i := range n {
		wg.Go(func() {
			d, err := e.Decide(t.Context(), asks(t, "https://example.com/", bot(i)))
			mu.Lock()
			defer mu.Unlock()
			longest = max(longest, time.Since(begun))
			verdicts[verdict(d, err)]++
			if err == nil && !d.Allow && d.Robots.State == Unreachable && d.Robots.Retry <= 0 {
				t.Errorf("%s gets no time for another try", bot(i))
			}
		})
	}
	wg.Wait()
	return longest, verdicts
}

// TestManyCrawlersAtOnce: neither the wait of a crawler nor the fetches grow with the number of
// crawlers.
func TestManyCrawlersAtOnce(t *testing.T) {
	for _, test := range []struct {
		name    string
		answer  string
		takes   time.Duration
		most    time.Duration // longest wait
		fetches int
		want    map[string]int
	}{
		{"rules", "HTTP/1.1 200 OK\n\nUser-agent: *\nDisallow: /\n", time.Second, time.Second, 1, map[string]int{"deny rule fresh": 1000}},
		{"none", "HTTP/1.1 404 Not Found\n\n", time.Second, time.Second, 1, map[string]int{"allow unavailable unavailable": 1000}},
		{"not to be stored", "HTTP/1.1 200 OK\nCache-Control: no-store\n\nUser-agent: *\nDisallow: /\n", time.Second, time.Second, 1, map[string]int{"deny rule fresh": 1000}},
		{"silent", "", time.Hour, 10 * time.Second, 1, map[string]int{"deny unreachable unreachable": 1000}},
		{"overloaded", unavailable, time.Second, 6 * time.Second, 17, map[string]int{"deny unreachable unreachable": 40}},
		{"overloaded and slow", unavailable, 9 * time.Second, 21 * time.Second, 17, map[string]int{"deny unreachable unreachable": 100}},
		{"limited", tooMany, time.Second, 6 * time.Second, 17, map[string]int{"deny unreachable unreachable": 1000}},
		// 16 crawlers have answers that allow everything. They allow nothing to the other crawlers.
		{"forbidden", forbidden, time.Second, 6 * time.Second, 17, map[string]int{"allow unavailable unavailable": 16, "deny unreachable unreachable": 24}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				web := newOrigins()
				web.Serve(example, slow(test.takes, raw(test.answer)))
				c := &concurrency{RoundTripper: web}
				r := defaults()
				r.MinAge = 0
				e := engineFor(t, r, c, newDurable(), io.Discard)
				n := 0
				for _, m := range test.want {
					n += m
				}
				longest, got := atOnce(t, e, n)
				if longest > test.most {
					t.Errorf("the longest wait was %v, want %v at most", longest, test.most)
				}
				if fmt.Sprint(got) != fmt.Sprint(test.want) {
					t.Errorf("got %v, want %v", got, test.want)
				}
				time.Sleep(time.Hour) // fake clock: for fetches that no request waits for
				if n := len(web.Fetched()); n != test.fetches || c.most.Load() > 4 {
					t.Errorf("%d fetches, %d at once, want %d, 4 at most", n, c.most.Load(), test.fetches)
				}
			})
		})
	}
}

// TestManyCrawlersBack: an origin that has recovered is fetched from once, or a few
// times more by fetches that were under way.
func TestManyCrawlersBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := newOrigins()
		web.Serve(example, slow(time.Second, raw(unavailable)))
		e := engineFor(t, defaults(), web, newDurable(), io.Discard)
		atOnce(t, e, 40)
		time.Sleep(time.Minute) // fake clock
		web.Fetched()
		web.Serve(example, slow(time.Second, rules("User-agent: *\nDisallow: /\n")))
		longest, got := atOnce(t, e, 40)
		if n := len(web.Fetched()); n != 1 || longest != time.Second || got["deny rule fresh"] != 40 {
			t.Errorf("%d fetches, %v, %v, want 1, 1s, 40 times a rule", n, longest, got)
		}

		web.Serve("https://b.example/robots.txt", slow(time.Second, raw(unavailable)))
		var wg sync.WaitGroup
		for i := range 40 {
			wg.Go(func() { e.Decide(t.Context(), asks(t, "https://b.example/", bot(i))) })
		}
		time.Sleep(1500 * time.Millisecond) // fake clock: four are under way
		web.Serve("https://b.example/robots.txt", slow(time.Second, rules("")))
		wg.Wait()
		if n := len(web.Fetched()); n > 1+2*maxConcurrentFetches {
			t.Errorf("%d fetches of an origin that is back", n)
		}
	})
}

// TestRotatingNames: a client that invents names causes the fetches of a few crawlers, and does not
// take the slots of others.
func TestRotatingNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := newOrigins()
		web.Serve(example, byCrawler(raw(unavailable), map[string]string{"HonestBot": forbidden}))
		e := engineFor(t, defaults(), web, newDurable(), io.Discard)
		honest := func() string {
			r := asks(t, "https://example.com/", "HonestBot/1.0")
			r.Crawler.Tokens = []string{"HonestBot"} // the site recognizes its fetch
			return verdict(e.Decide(t.Context(), r))
		}
		const want = "allow unavailable unavailable"
		if got := honest(); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
		web.Fetched()
		for i := range 1000 {
			d, err := e.Decide(t.Context(), asks(t, "https://example.com/", bot(i)))
			if got, want := verdict(d, err), "deny unreachable unreachable"; got != want || d.Robots.Retry <= 0 {
				t.Fatalf("name %d: got %q, want %q", i, got, want)
			}
			if got := honest(); got != want {
				t.Fatalf("after %d names: got %q, want %q", i, got, want)
			}
			time.Sleep(4 * time.Millisecond) // fake clock: all within the first backoff
		}
		if n := len(web.Fetched()); n != 16 { // 15 have got slots, the others share one
			t.Errorf("%d fetches, want 16", n)
		}
		// Free slots go to other names, which fetch: some at a time.
		for i := range 3600 {
			e.Decide(t.Context(), asks(t, "https://example.com/", bot(i)))
			time.Sleep(time.Second) // fake clock
		}
		if n := len(web.Fetched()); n > 240 {
			t.Errorf("%d fetches in an hour", n)
		}
		if got := honest(); got != want {
			t.Errorf("after an hour: got %q, want %q", got, want)
		}
		if set, _ := e.Known(t.Context(), Scope{Origin: "https://example.com"}); len(set.Bound) > 17 {
			t.Errorf("%d answers are kept", len(set.Bound))
		}
	})
}

// TestSeventeenNames: one crawler more than there are slots, by turns. Each has
// its backoff, which grows.
func TestSeventeenNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := newOrigins()
		web.Serve(example, raw(unavailable))
		e := engineFor(t, defaults(), web, newDurable(), io.Discard)
		turns := func() {
			for i := range 3600 {
				e.Decide(t.Context(), asks(t, "https://example.com/", bot(i%17)))
				time.Sleep(time.Second) // fake clock
			}
		}
		turns()
		if n := len(web.Fetched()); n > 17*12 { // 5 s doubling to 15 min
			t.Errorf("%d fetches in the first hour", n)
		}
		turns()
		if n := len(web.Fetched()); n > 17*4 {
			t.Errorf("%d fetches in the second hour", n)
		}
	})
}

// TestSlotIsKept for a crawler that comes back soon after its answer has ended, although
// other crawlers wait for one. A crawler that does not come back loses it.
func TestSlotIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := newOrigins()
		web.Serve(example, raw(unavailable))
		s := newDurable()
		e := engineFor(t, defaults(), web, s, io.Discard)
		ask := func(agent string) {
			t.Helper()
			if _, err := e.Decide(t.Context(), asks(t, "https://example.com/", agent)); err != nil {
				t.Fatal(err)
			}
		}
		hasSlot := func(token string) bool {
			set, _ := e.Known(t.Context(), Scope{Origin: "https://example.com"})
			return set.Bound[slotOf("", token)] != nil
		}
		ask("HonestBot/1.0")
		for i := range 20 {
			ask(bot(i))
		}
		time.Sleep(30 * time.Second) // fake clock: all backoffs have ended
		for i := 20; i < 40; i++ {
			ask(bot(i))
		}
		ask("HonestBot/1.0")
		if hasSlot("bot-ca") || !hasSlot("honestbot") {
			t.Error("a new crawler has taken the slot of another")
		}
		web.Fetched()
		time.Sleep(290 * time.Second) // fake clock: the honest crawler's slot is still kept
		e.Close()
		e = engineFor(t, defaults(), web, s, io.Discard) // the store has the slots
		for i := 40; i < 80; i++ {
			ask(bot(i))
		}
		if !hasSlot("honestbot") || hasSlot("bot-a") || !hasSlot("bot-ea") {
			t.Error("the free slots have not gone to new crawlers")
		}
		if n := len(web.Fetched()); n != 16 {
			t.Errorf("%d fetches, want 16", n)
		}
	})
}

// TestNoSlotRecovers: crawlers without a slot use the answer for all as soon as there is
// one, and later its last good copy.
func TestNoSlotRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := newOrigins()
		web.Serve(example, raw(forbidden))
		e := engineFor(t, defaults(), web, newDurable(), io.Discard)
		late := asks(t, "https://example.com/", "LateBot/1.0")
		check := func(want string, retry time.Duration) {
			t.Helper()
			d, err := e.Decide(t.Context(), late)
			if got := verdict(d, err); got != want || d.Robots.Retry != retry {
				t.Errorf("got %q, %v, want %q, %v", got, d.Robots.Retry, want, retry)
			}
		}
		for i := range 16 {
			e.Decide(t.Context(), asks(t, "https://example.com/", bot(i)))
		}
		check("deny unreachable unreachable", 5*time.Second)
		time.Sleep(5 * time.Second) // fake clock
		check("deny unreachable unreachable", 10*time.Second)
		if got, want := len(web.Fetched()), 18; got != want {
			t.Errorf("%d fetches, want %d", got, want)
		}
		web.Serve(example, rules("User-agent: *\nDisallow: /private/\n"))
		check("deny unreachable unreachable", 10*time.Second)
		time.Sleep(10 * time.Second) // fake clock
		check("allow no-match fresh", 0)
		if set, _ := e.Known(t.Context(), Scope{Origin: "https://example.com"}); len(set.Bound) != 16 {
			t.Errorf("%d answers are kept, want 16", len(set.Bound))
		}
		time.Sleep(24 * time.Hour) // fake clock
		web.Serve(example, raw(forbidden))
		for i := range 40 {
			e.Decide(t.Context(), asks(t, "https://example.com/", bot(i)))
		}
		check("allow no-match stale", 0)
	})
}

// TestReservedSlot: names that a client invents don't close an origin to a configured
// crawler, before its first fetch and after.
func TestReservedSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := newOrigins()
		web.Serve(example, byCrawler(raw(forbidden), map[string]string{"NewsBot": unavailable}))
		known := &crawler{Name: "news", Tokens: []string{"NewsBot"}}
		e := engineWith(t, Config{Settings: defaults(), Transport: web, Store: newDurable()}, known)
		news := asks(t, "https://example.com/", "NewsBot/1.0")
		news.Crawler = known
		check := func(want string) {
			t.Helper()
			for i := range 40 {
				e.Decide(t.Context(), asks(t, "https://example.com/", bot(i)))
			}
			d, err := e.Decide(t.Context(), news)
			if got := verdict(d, err); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
		check("deny unreachable unreachable") // its own answer: a 503
		time.Sleep(time.Minute)               // fake clock
		web.Serve(example, byCrawler(raw(forbidden), map[string]string{"NewsBot": "HTTP/1.1 200 OK\n\nUser-agent: *\nDisallow: /x\n"}))
		check("allow no-match fresh")
	})
}

// TestNoSlotDenies: long failures do not open an origin to crawlers without a slot, since the answer
// that they share was for another crawler.
func TestNoSlotDenies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := newOrigins()
		web.Serve(example, slow(time.Second, raw(unavailable)))
		r := defaults()
		r.StaleFor, r.AfterStale = 0, "allow"
		e := engineFor(t, r, web, newDurable(), io.Discard)
		if _, got := atOnce(t, e, 40); got["allow unavailable unreachable"] != 16 || got["deny unreachable unreachable"] != 24 {
			t.Errorf("got %v", got)
		}
	})
}

// TestManyRenew: a copy that is about to end is not renewed for each name.
func TestManyRenew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := newOrigins()
		web.Serve(example, rules("User-agent: *\nDisallow: /\n"))
		e := engineFor(t, defaults(), web, newDurable(), io.Discard)
		e.Decide(t.Context(), asks(t, "https://example.com/", "Bot/1.0"))
		time.Sleep(23 * time.Hour) // fake clock
		web.Fetched()
		web.Serve(example, slow(time.Second, raw(unavailable)))
		for i := range 500 {
			d, err := e.Decide(t.Context(), asks(t, "https://example.com/", bot(i)))
			if got, want := verdict(d, err), "deny rule fresh"; got != want {
				t.Fatalf("got %q, want %q", got, want)
			}
			time.Sleep(100 * time.Millisecond) // fake clock
		}
		if n := len(web.Fetched()); n > 16+5 {
			t.Errorf("%d fetches in a minute", n)
		}
	})
}

// TestRenewBesideMany: names that a client invents don't keep a copy from being renewed
// for a crawler that has a slot.
func TestRenewBesideMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const robots = "HTTP/1.1 200 OK\n\nUser-agent: *\nDisallow: /x\n"
		web := newOrigins()
		web.Serve(example, raw(robots))
		known := &crawler{Name: "news", Tokens: []string{"NewsBot"}}
		e := engineWith(t, Config{Settings: defaults(), Transport: web, Store: newDurable()}, known)
		news := asks(t, "https://example.com/", "NewsBot/1.0")
		news.Crawler = known
		e.Decide(t.Context(), news)
		time.Sleep(23 * time.Hour) // fake clock
		web.Serve(example, byCrawler(raw("HTTP/1.1 429 Too Many Requests\nRetry-After: 86400\n\n"), map[string]string{"NewsBot": robots}))
		for i := range 40 {
			e.Decide(t.Context(), asks(t, "https://example.com/", bot(i)))
			synctest.Wait()
		}
		web.Fetched()
		e.Decide(t.Context(), news)
		synctest.Wait()
		if n := len(web.Fetched()); n != 1 {
			t.Errorf("%d fetches, want one that renews the copy", n)
		}
	})
}

// TestRefreshWithoutSlot fetches once, and returns the answer.
func TestRefreshWithoutSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := newOrigins()
		web.Serve(example, slow(time.Second, raw(forbidden)))
		e := engineFor(t, defaults(), web, newDurable(), io.Discard)
		atOnce(t, e, 40)
		web.Fetched()
		begun := time.Now()
		st, err := e.Refresh(t.Context(), asks(t, "https://example.com/", "LateBot/1.0"))
		if err != nil || st.State != Unreachable || st.Allow || st.Snapshot.Status != 403 || st.Snapshot.Fetched.Before(begun) {
			t.Errorf("got %+v, %v", st, err)
		}
		set, _ := e.Known(t.Context(), Scope{Origin: "https://example.com"})
		for slot := range set.Bound {
			if isNoSlot(slot) {
				continue
			}
			_, token, _ := SplitSlot(slot)
			st, err := e.Refresh(t.Context(), asks(t, "https://example.com/", token+"/1.0"))
			if err != nil || st.State != Unavailable || !st.Allow {
				t.Errorf("%s has a slot, got %+v, %v", token, st, err)
			}
			break
		}
		if n := len(web.Fetched()); n != 2 {
			t.Errorf("%d fetches, want 2", n)
		}
	})
}

// TestCloseManyCrawlers ends queued fetches too.
func TestCloseManyCrawlers(t *testing.T) {
	for _, after := range []time.Duration{500 * time.Millisecond, 1500 * time.Millisecond, time.Second} {
		synctest.Test(t, func(t *testing.T) {
			web := newOrigins()
			web.Serve(example, slow(time.Second, raw(unavailable)))
			e := engineFor(t, defaults(), web, newDurable(), io.Discard)
			var wg sync.WaitGroup
			for i := range 40 {
				wg.Go(func() {
					_, err := e.Decide(t.Context(), asks(t, "https://example.com/", bot(i)))
					if err != nil && !errors.Is(err, context.Canceled) {
						t.Errorf("got %v, want canceled", err)
					}
				})
			}
			time.Sleep(after) // fake clock
			begun := time.Now()
			e.Close()
			wg.Wait()
			if took := time.Since(begun); took != 0 {
				t.Errorf("the end took %v", took)
			}
			if n := len(e.scopes); n != 0 {
				t.Errorf("%d scopes still have state", n)
			}
		})
	}
}

// TestScopeFetchesEnd: no state is kept of a scope when no request waits for it.
func TestScopeFetchesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := newOrigins()
		web.Serve(example, slow(9*time.Second, raw(unavailable)))
		e := engineFor(t, defaults(), web, newDurable(), io.Discard)
		for _, agent := range []string{"ABot/1", "BBot/1"} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			e.Decide(ctx, asks(t, "https://example.com/", agent))
		}
		if n := len(e.scopes); n != 1 {
			t.Errorf("%d origins have traffic, want 1", n)
		}
		atOnce(t, e, 100)
		time.Sleep(time.Minute) // fake clock
		web.Serve("https://b.example/robots.txt", origintest.Failures["nohost"])
		e.Decide(t.Context(), asks(t, "https://b.example/", "Bot/1.0"))
		synctest.Wait() // the fetch has answered before it ends
		if n := len(e.scopes); n != 0 {
			t.Errorf("%d scopes still have state", n)
		}
	})
}
