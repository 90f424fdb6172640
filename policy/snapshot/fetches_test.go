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
		{"overloaded and slow", unavailable, 9 * time.Second, 9 * time.Second, 1, map[string]int{"deny unreachable unreachable": 100}},
		{"limited", tooMany, time.Second, time.Second, 1, map[string]int{"deny unreachable unreachable": 1000}},
		{"forbidden", forbidden, time.Second, time.Second, 1, map[string]int{"allow unavailable unavailable": 1000}},
		{"varied", "HTTP/1.1 200 OK\nVary: *\n\nUser-agent: *\nDisallow: /\n", time.Second, time.Second, 1, map[string]int{"deny rule fresh": 1000}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				web := newOrigins()
				web.Serve(example, slow(test.takes, raw(test.answer)))
				r := defaults()
				r.MinAge = 0
				e := engineFor(t, r, web, newDurable(), io.Discard)
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
				if n := len(web.Fetched()); n != test.fetches {
					t.Errorf("%d fetches, want %d", n, test.fetches)
				}
			})
		})
	}
}

// TestManyCrawlersBack: an origin that has recovered is fetched from once, or once
// more by a fetch that was under way.
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
		time.Sleep(500 * time.Millisecond) // fake clock: one is under way
		web.Serve("https://b.example/robots.txt", slow(time.Second, rules("")))
		wg.Wait()
		if n := len(web.Fetched()); n > 2 {
			t.Errorf("%d fetches of an origin that is back", n)
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
		if n := len(web.Fetched()); n > 5 {
			t.Errorf("%d fetches in a minute", n)
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
