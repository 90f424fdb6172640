package policy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// byCrawler answers those named differently from everybody else.
func byCrawler(everybody func(*http.Request) (*http.Response, error), named map[string]string) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		name, _, _ := strings.Cut(r.Header.Get("User-Agent"), "/")
		if text, ok := named[name]; ok {
			return raw(text)(r)
		}
		return everybody(r)
	}
}

const (
	forbidden   = "HTTP/1.1 403 Forbidden\n\n"
	tooMany     = "HTTP/1.1 429 Too Many Requests\n\n"
	unavailable = "HTTP/1.1 503 Service Unavailable\n\n"
)

// bot is a User-Agent of its own for each number.
func bot(i int) string {
	return "Bot-" + strings.NewReplacer("0", "a", "1", "b", "2", "c", "3", "d", "4", "e", "5", "f", "6", "g", "7", "h", "8", "i", "9", "j").Replace(fmt.Sprint(i)) + "/1.0"
}

// atOnce lets n crawlers ask together, and returns how long the last of them
// waits, and how often each verdict was given.
func atOnce(t *testing.T, e *Engine, n int) (longest time.Duration, verdicts map[string]int) {
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
				t.Errorf("%s is not told when to come back", bot(i))
			}
		})
	}
	wg.Wait()
	return longest, verdicts
}

// TestManyCrawlersAtOnce: the wait of one does not grow with the number of
// others, nor do the fetches.
func TestManyCrawlersAtOnce(t *testing.T) {
	for _, test := range []struct {
		name    string
		answer  string
		takes   time.Duration
		most    time.Duration // that anybody waits
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
		// The answers of 16 allow them everything. They allow nothing to the others.
		{"forbidden", forbidden, time.Second, 6 * time.Second, 17, map[string]int{"allow unavailable unavailable": 16, "deny unreachable unreachable": 24}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				web := newOrigins()
				web.serve(example, slow(test.takes, raw(test.answer)))
				c := &crowd{RoundTripper: web}
				r := defaults()
				r.MinAge = 0
				e := engineFor(t, r, c, newDurable(), io.Discard)
				defer e.Close()
				n := 0
				for _, m := range test.want {
					n += m
				}
				longest, got := atOnce(t, e, n)
				if longest > test.most {
					t.Errorf("somebody waited %v, want %v at most", longest, test.most)
				}
				if fmt.Sprint(got) != fmt.Sprint(test.want) {
					t.Errorf("got %v, want %v", got, test.want)
				}
				time.Sleep(time.Hour) // for what nobody waits for any more
				if n := len(web.fetched()); n != test.fetches || c.most.Load() > 4 {
					t.Errorf("%d fetches, %d at once, want %d, 4 at most", n, c.most.Load(), test.fetches)
				}
			})
		})
	}
}

// TestManyCrawlersBack: an origin that has recovered is asked once, or a few
// times by those who were under way.
func TestManyCrawlersBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := newOrigins()
		web.serve(example, slow(time.Second, raw(unavailable)))
		e := engineFor(t, defaults(), web, newDurable(), io.Discard)
		defer e.Close()
		atOnce(t, e, 40)
		time.Sleep(time.Minute)
		web.fetched()
		web.serve(example, slow(time.Second, rules("User-agent: *\nDisallow: /\n")))
		longest, got := atOnce(t, e, 40)
		if n := len(web.fetched()); n != 1 || longest != time.Second || got["deny rule fresh"] != 40 {
			t.Errorf("%d fetches, %v, %v, want 1, 1s, 40 times a rule", n, longest, got)
		}

		web.serve("https://b.example/robots.txt", slow(time.Second, raw(unavailable)))
		var wg sync.WaitGroup
		for i := range 40 {
			wg.Go(func() { e.Decide(t.Context(), asks(t, "https://b.example/", bot(i))) })
		}
		time.Sleep(1500 * time.Millisecond) // four are under way
		web.serve("https://b.example/robots.txt", slow(time.Second, rules("")))
		wg.Wait()
		if n := len(web.fetched()); n > 1+2*maxConcurrentFetches {
			t.Errorf("%d fetches of an origin that is back", n)
		}
	})
}

// TestRotatingNames: who invents names is a few crawlers to the origin, and
// leaves alone what honest ones have.
func TestRotatingNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := newOrigins()
		web.serve(example, byCrawler(raw(unavailable), map[string]string{"HonestBot": forbidden}))
		e := engineFor(t, defaults(), web, newDurable(), io.Discard)
		defer e.Close()
		honest := func() string {
			return verdict(e.Decide(t.Context(), asks(t, "https://example.com/", "HonestBot/1.0")))
		}
		const want = "allow unavailable unavailable"
		if got := honest(); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
		web.fetched()
		for i := range 1000 {
			d, err := e.Decide(t.Context(), asks(t, "https://example.com/", bot(i)))
			if got, want := verdict(d, err), "deny unreachable unreachable"; got != want || d.Robots.Retry <= 0 {
				t.Fatalf("name %d: got %q, want %q", i, got, want)
			}
			if got := honest(); got != want {
				t.Fatalf("after %d names: got %q, want %q", i, got, want)
			}
			time.Sleep(4 * time.Millisecond) // all within the first backoff
		}
		if n := len(web.fetched()); n != 16 { // 15 have got slots, the others share one
			t.Errorf("%d fetches, want 16", n)
		}
		// Seats that have been left go to other names, which ask: some at a time.
		for i := range 3600 {
			e.Decide(t.Context(), asks(t, "https://example.com/", bot(i)))
			time.Sleep(time.Second)
		}
		if n := len(web.fetched()); n > 240 {
			t.Errorf("%d fetches in an hour", n)
		}
		if got := honest(); got != want {
			t.Errorf("after an hour: got %q, want %q", got, want)
		}
		if rec, _ := e.Known(t.Context(), Scope{Origin: "https://example.com"}); len(rec.Bound) > 17 {
			t.Errorf("%d answers are kept", len(rec.Bound))
		}
	})
}

// TestSeventeenNames: as many as have slots, and one more, by turns. Each has
// its backoff, which grows.
func TestSeventeenNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := newOrigins()
		web.serve(example, raw(unavailable))
		e := engineFor(t, defaults(), web, newDurable(), io.Discard)
		defer e.Close()
		turns := func() {
			for i := range 3600 {
				e.Decide(t.Context(), asks(t, "https://example.com/", bot(i%17)))
				time.Sleep(time.Second)
			}
		}
		turns()
		if n := len(web.fetched()); n > 17*12 { // 5 s doubling to 15 min
			t.Errorf("%d fetches in the first hour", n)
		}
		turns()
		if n := len(web.fetched()); n > 17*4 {
			t.Errorf("%d fetches in the second hour", n)
		}
	})
}

// TestSeatIsKept for who comes back soon after its answer has ended, however
// many would like to have it; who does not come back loses it.
func TestSeatIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := newOrigins()
		web.serve(example, raw(unavailable))
		s := newDurable()
		e := engineFor(t, defaults(), web, s, io.Discard)
		defer func() { e.Close() }()
		ask := func(agent string) {
			t.Helper()
			if _, err := e.Decide(t.Context(), asks(t, "https://example.com/", agent)); err != nil {
				t.Fatal(err)
			}
		}
		hasSlot := func(token string) bool {
			rec, _ := e.Known(t.Context(), Scope{Origin: "https://example.com"})
			return rec.Bound[token] != nil
		}
		ask("HonestBot/1.0")
		for i := range 20 {
			ask(bot(i))
		}
		time.Sleep(30 * time.Second) // all backoffs have ended
		for i := 20; i < 40; i++ {
			ask(bot(i))
		}
		ask("HonestBot/1.0")
		if hasSlot("bot-ca") || !hasSlot("honestbot") {
			t.Error("somebody new has pushed out who had a slot")
		}
		web.fetched()
		time.Sleep(290 * time.Second) // the honest one's is over for less long than it is kept
		e.Close()
		e = engineFor(t, defaults(), web, s, io.Discard) // the store remembers who has a slot
		for i := 40; i < 80; i++ {
			ask(bot(i))
		}
		if !hasSlot("honestbot") || hasSlot("bot-a") || !hasSlot("bot-ea") {
			t.Error("the slots have not gone from who left to who came")
		}
		if n := len(web.fetched()); n != 16 {
			t.Errorf("%d fetches, want 16", n)
		}
	})
}

// TestOthersRecover: the shared answer is the origin's as soon as that speaks
// for itself, and its last good copy serves them as anybody.
func TestOthersRecover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := newOrigins()
		web.serve(example, raw(forbidden))
		e := engineFor(t, defaults(), web, newDurable(), io.Discard)
		defer e.Close()
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
		time.Sleep(5 * time.Second)
		check("deny unreachable unreachable", 10*time.Second)
		if got, want := len(web.fetched()), 18; got != want {
			t.Errorf("%d fetches, want %d", got, want)
		}
		web.serve(example, rules("User-agent: *\nDisallow: /private/\n"))
		check("deny unreachable unreachable", 10*time.Second)
		time.Sleep(10 * time.Second)
		check("allow no-match fresh", 0)
		if rec, _ := e.Known(t.Context(), Scope{Origin: "https://example.com"}); len(rec.Bound) != 16 {
			t.Errorf("%d answers are kept, want 16", len(rec.Bound))
		}
		time.Sleep(24 * time.Hour)
		web.serve(example, raw(forbidden))
		for i := range 40 {
			e.Decide(t.Context(), asks(t, "https://example.com/", bot(i)))
		}
		check("allow no-match stale", 0)
	})
}

// TestReservedSeat: names that a client invents don't keep a crawler that is
// configured from an origin, before it has asked and after.
func TestReservedSeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := newOrigins()
		web.serve(example, byCrawler(raw(forbidden), map[string]string{"NewsBot": unavailable}))
		known := &Crawler{Name: "news", Mode: Enforce, Tokens: []string{"NewsBot"}}
		e, err := New(Config{Robots: defaults(), Transport: web, Store: newDurable(), Log: slog.New(slog.DiscardHandler), Crawlers: Crawlers{Known: []*Crawler{known}}})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
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
		time.Sleep(time.Minute)
		web.serve(example, byCrawler(raw(forbidden), map[string]string{"NewsBot": "HTTP/1.1 200 OK\n\nUser-agent: *\nDisallow: /x\n"}))
		check("allow no-match fresh")
	})
}

// TestOthersStayOut where long failures open an origin: what they share was not
// said to them.
func TestOthersStayOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := newOrigins()
		web.serve(example, slow(time.Second, raw(unavailable)))
		r := defaults()
		r.StaleFor, r.AfterStale = 0, "allow"
		e := engineFor(t, r, web, newDurable(), io.Discard)
		defer e.Close()
		if _, got := atOnce(t, e, 40); got["allow unavailable unreachable"] != 16 || got["deny unreachable unreachable"] != 24 {
			t.Errorf("got %v", got)
		}
	})
}

// TestManyRenew: a copy that is about to end is not asked for by each name.
func TestManyRenew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := newOrigins()
		web.serve(example, rules("User-agent: *\nDisallow: /\n"))
		e := engineFor(t, defaults(), web, newDurable(), io.Discard)
		defer e.Close()
		e.Decide(t.Context(), asks(t, "https://example.com/", "Bot/1.0"))
		time.Sleep(23 * time.Hour)
		web.fetched()
		web.serve(example, slow(time.Second, raw(unavailable)))
		for i := range 500 {
			d, err := e.Decide(t.Context(), asks(t, "https://example.com/", bot(i)))
			if got, want := verdict(d, err), "deny rule fresh"; got != want {
				t.Fatalf("got %q, want %q", got, want)
			}
			time.Sleep(100 * time.Millisecond)
		}
		if n := len(web.fetched()); n > 16+5 {
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
		web.serve(example, raw(robots))
		known := &Crawler{Name: "news", Mode: Enforce, Tokens: []string{"NewsBot"}}
		e, err := New(Config{Robots: defaults(), Transport: web, Store: newDurable(), Log: slog.New(slog.DiscardHandler), Crawlers: Crawlers{Known: []*Crawler{known}}})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		news := asks(t, "https://example.com/", "NewsBot/1.0")
		news.Crawler = known
		e.Decide(t.Context(), news)
		time.Sleep(23 * time.Hour)
		web.serve(example, byCrawler(raw("HTTP/1.1 429 Too Many Requests\nRetry-After: 86400\n\n"), map[string]string{"NewsBot": robots}))
		for i := range 40 {
			e.Decide(t.Context(), asks(t, "https://example.com/", bot(i)))
			synctest.Wait()
		}
		web.fetched()
		e.Decide(t.Context(), news)
		synctest.Wait()
		if n := len(web.fetched()); n != 1 {
			t.Errorf("%d fetches, want one that renews the copy", n)
		}
	})
}

// TestRefreshWithoutSeat asks the origin once, and says what it answered.
func TestRefreshWithoutSeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := newOrigins()
		web.serve(example, slow(time.Second, raw(forbidden)))
		e := engineFor(t, defaults(), web, newDurable(), io.Discard)
		defer e.Close()
		atOnce(t, e, 40)
		web.fetched()
		begun := time.Now()
		st, err := e.Refresh(t.Context(), asks(t, "https://example.com/", "LateBot/1.0"))
		if err != nil || st.State != Unreachable || st.Allow || st.Snapshot.Status != 403 || st.Snapshot.Fetched.Before(begun) {
			t.Errorf("got %+v, %v", st, err)
		}
		rec, _ := e.Known(t.Context(), Scope{Origin: "https://example.com"})
		for token := range rec.Bound {
			if token == NoSlot {
				continue
			}
			st, err := e.Refresh(t.Context(), asks(t, "https://example.com/", token+"/1.0"))
			if err != nil || st.State != Unavailable || !st.Allow {
				t.Errorf("%s has a slot, got %+v, %v", token, st, err)
			}
			break
		}
		if n := len(web.fetched()); n != 2 {
			t.Errorf("%d fetches, want 2", n)
		}
	})
}

// TestCloseManyCrawlers ends those that wait for a lane as well.
func TestCloseManyCrawlers(t *testing.T) {
	for _, after := range []time.Duration{500 * time.Millisecond, 1500 * time.Millisecond, time.Second} {
		synctest.Test(t, func(t *testing.T) {
			web := newOrigins()
			web.serve(example, slow(time.Second, raw(unavailable)))
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
			time.Sleep(after)
			begun := time.Now()
			e.Close()
			wg.Wait()
			if took := time.Since(begun); took != 0 {
				t.Errorf("the end took %v", took)
			}
			if n := len(e.resolver.scopes); n != 0 {
				t.Errorf("%d origins still have traffic", n)
			}
		})
	}
}

// TestTrafficEnds: nothing is kept of an origin when nobody waits for it.
func TestTrafficEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := newOrigins()
		web.serve(example, slow(9*time.Second, raw(unavailable)))
		e := engineFor(t, defaults(), web, newDurable(), io.Discard)
		defer e.Close()
		for _, agent := range []string{"ABot/1", "BBot/1"} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			e.Decide(ctx, asks(t, "https://example.com/", agent))
		}
		if n := len(e.resolver.scopes); n != 1 {
			t.Errorf("%d origins have traffic, want 1", n)
		}
		atOnce(t, e, 100)
		time.Sleep(time.Minute)
		web.serve("https://b.example/robots.txt", failures["nohost"])
		e.Decide(t.Context(), asks(t, "https://b.example/", "Bot/1.0"))
		if n := len(e.resolver.scopes); n != 0 {
			t.Errorf("%d origins still have traffic", n)
		}
	})
}
