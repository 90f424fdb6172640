package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/policy/internal/origintest"
)

// concurrency counts how many requests to an origin are under way at once.
type concurrency struct {
	http.RoundTripper
	now, most atomic.Int64
}

func (c *concurrency) RoundTrip(r *http.Request) (*http.Response, error) {
	n := c.now.Add(1)
	defer c.now.Add(-1)
	for most := c.most.Load(); n > most && !c.most.CompareAndSwap(most, n); most = c.most.Load() {
	}
	return c.RoundTripper.RoundTrip(r)
}

// TestThousandAtOnce: however many requests of one crawler wait, a failure that binds it alone costs one fetch.
func TestThousandAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := newOrigins()
		web.Serve(example, slow(time.Second, raw(unavailable)))
		e := engineFor(t, defaults(), web, newDurable(), io.Discard)
		var wg sync.WaitGroup
		for i := range 1000 {
			wg.Go(func() {
				r := asks(t, fmt.Sprintf("https://example.com/%d", i), "Bot/1.0")
				if got, want := verdict(e.Decide(t.Context(), r)), "deny unreachable unreachable"; got != want {
					t.Errorf("got %q, want %q", got, want)
				}
			})
		}
		wg.Wait()
		if got := web.Fetched(); len(got) != 1 {
			t.Errorf("%d fetches, want 1", len(got))
		}
	})
}

// TestCancelledRequests: a fetch is for all requests that wait for it, so none of them ends it.
func TestCancelledRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := newOrigins()
		web.Serve(example, slow(5*time.Second, rules("User-agent: *\nDisallow: /\n")))
		e := engineFor(t, defaults(), web, newDurable(), io.Discard)
		r := asks(t, "https://example.com/", "Bot/1.0")
		var wg sync.WaitGroup
		for _, test := range []struct {
			patience time.Duration
			want     string
		}{
			{time.Second, "error deadline"}, // the first request ends first
			{2 * time.Second, "error deadline"},
			{time.Minute, "deny rule fresh"},
		} {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), test.patience)
				defer cancel()
				if got := verdict(e.Decide(ctx, r)); got != test.want {
					t.Errorf("got %q, want %q", got, test.want)
				}
			})
			synctest.Wait()
		}
		wg.Wait()
		if got := web.Fetched(); len(got) != 1 {
			t.Errorf("%d fetches, want 1", len(got))
		}
		// The answer is kept even if no request waits for it any more.
		web.Serve("https://b.example/robots.txt", slow(5*time.Second, rules("")))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		e.Decide(ctx, asks(t, "https://b.example/", "Bot/1.0"))
		time.Sleep(6 * time.Second) // fake clock
		if _, ok := e.Known(t.Context(), Query{Scope: Scope{Origin: "https://b.example"}, UserAgent: "robotsgate/0"}); !ok {
			t.Error("the answer is lost")
		}
	})
}

// TestRenewal: no request waits for a renewal in the background, and there is only one.
func TestRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := newOrigins()
		web.Serve(example, slow(5*time.Second, rules("User-agent: *\nDisallow: /\n")))
		c := &concurrency{RoundTripper: web}
		e := engineFor(t, defaults(), c, newDurable(), io.Discard)
		r := asks(t, "https://example.com/", "Bot/1.0")
		e.Decide(t.Context(), r)
		time.Sleep(23 * time.Hour) // fake clock
		before := time.Now()
		var wg sync.WaitGroup
		for range 1000 {
			wg.Go(func() {
				if got, want := verdict(e.Decide(t.Context(), r)), "deny rule fresh"; got != want {
					t.Errorf("got %q, want %q", got, want)
				}
			})
		}
		wg.Wait()
		if took := time.Since(before); took != 0 {
			t.Errorf("requests waited %v for a renewal", took)
		}
		time.Sleep(6 * time.Second) // fake clock
		if d, _ := e.Decide(t.Context(), r); d.Robots.Age > 5*time.Second {
			t.Errorf("age %v after the renewal", d.Robots.Age)
		}
		if got := web.Fetched(); len(got) != 2 || c.most.Load() != 1 {
			t.Errorf("%d fetches, %d at once, want 2, 1", len(got), c.most.Load())
		}
	})
}

// TestRefresh fetches in any case, but never beside another fetch.
func TestRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := newOrigins()
		web.Serve(example, slow(2*time.Second, rules("User-agent: *\nDisallow: /\n")))
		c := &concurrency{RoundTripper: web}
		e := engineFor(t, defaults(), c, newDurable(), io.Discard)
		r := asks(t, "https://example.com/", "Bot/1.0")
		var wg sync.WaitGroup
		wg.Go(func() { e.Decide(t.Context(), r) })
		time.Sleep(time.Second) // fake clock
		for range 10 {
			wg.Go(func() {
				asked := time.Now()
				st, err := e.Refresh(t.Context(), r)
				if err != nil || st.State != Fresh || st.File == nil || st.Snapshot.Fetched.Before(asked) {
					t.Errorf("got %+v, %v", st, err)
				}
			})
		}
		wg.Wait()
		// The answer of the fetch that was under way came after the refreshes began, so it counts.
		if got := web.Fetched(); len(got) != 1 || c.most.Load() != 1 {
			t.Errorf("%d fetches, %d at once, want 1, 1", len(got), c.most.Load())
		}
		if _, err := e.Refresh(t.Context(), r); err != nil {
			t.Error(err)
		}
		if got := web.Fetched(); len(got) != 1 {
			t.Errorf("%d fetches, want 1", len(got))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := e.Refresh(ctx, r); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want deadline exceeded", err)
		}
		web.Serve(example, origintest.Fails(fmt.Errorf("dial: %w", ErrProhibited)))
		time.Sleep(2 * time.Second) // fake clock
		if _, err := e.Refresh(t.Context(), r); !errors.Is(err, ErrProhibited) {
			t.Errorf("got %v, want ErrProhibited", err)
		}
	})
}

// TestPanic: a panic in a RoundTripper is an error for the requests that wait, and is logged.
func TestPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := newOrigins()
		web.Serve(example, func(*http.Request) (*http.Response, error) { time.Sleep(time.Second); panic("oops") }) // fake clock
		var log bytes.Buffer
		e := engineFor(t, defaults(), web, newDurable(), &log)
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				_, err := e.Decide(t.Context(), asks(t, "https://example.com/", "Bot/1.0"))
				if want := "fetch https://example.com/robots.txt: internal error"; err == nil || err.Error() != want {
					t.Errorf("got %v, want %s", err, want)
				}
			})
		}
		wg.Wait()
		if got := log.String(); strings.Count(got, "oops") != 1 || !strings.Contains(got, "url=https://example.com/robots.txt") {
			t.Errorf("log: %s", got)
		}
	})
}

// panicking is a store that panics.
type panicking struct{ emptyStore }

func (panicking) Load(context.Context, string) (Set, bool)       { panic("oops") }
func (panicking) Acquire(context.Context, string) (func(), bool) { panic("oops") }

// TestStorePanics: a request is decided by a fetch if the store panics, which is logged.
func TestStorePanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := newOrigins()
		web.Serve(example, rules("User-agent: *\nDisallow: /\n"))
		var log bytes.Buffer
		e := engineFor(t, defaults(), web, panicking{}, &log)
		if got, want := verdict(e.Decide(t.Context(), asks(t, "https://example.com/", "Bot/1.0"))), "deny rule fresh"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if n := strings.Count(log.String(), "panic=oops"); n != 2 {
			t.Errorf("%d panics are logged, want those of Load and Acquire: %s", n, log.String())
		}
	})
}

func TestOnFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := newOrigins()
		var got []string
		e := engineWith(t, Config{
			Settings: defaults(), Transport: web, Store: newDurable(),
			OnFetch: func(f Fetch) { got = append(got, fmt.Sprint(f.Origin, " ", f.Outcome, " ", f.Took)) },
		})
		for name, answer := range map[string]func(*http.Request) (*http.Response, error){
			"fresh":       slow(time.Second, rules("")),
			"unavailable": raw("HTTP/1.1 410 Gone\n\n"),
			"unreachable": origintest.Failures["silent"],
			"error":       origintest.Failures["nohost"],
		} {
			web.Serve("https://"+name+".example/robots.txt", answer)
		}
		for _, name := range []string{"fresh", "unavailable", "unreachable", "error", "fresh"} {
			e.Decide(t.Context(), asks(t, "https://"+name+".example/", "Bot/1.0"))
		}
		want := "https://fresh.example fresh 1s, https://unavailable.example unavailable 0s, " +
			"https://unreachable.example unreachable 10s, https://error.example error 0s"
		if strings.Join(got, ", ") != want {
			t.Errorf("got  %s\nwant %s", strings.Join(got, ", "), want)
		}
	})
}

func TestNewRefuses(t *testing.T) {
	for field, change := range map[string]func(*Settings){
		"MaxAge":     func(r *Settings) { r.MaxAge = 0 },
		"Timeout":    func(r *Settings) { r.Timeout = -1 },
		"MaxBytes":   func(r *Settings) { r.MaxBytes = 0 },
		"CacheBytes": func(r *Settings) { *r = Settings{MaxAge: 1, Timeout: 1, MaxBytes: 1} },
	} {
		r := DefaultSettings()
		change(&r)
		if _, err := New(Config{Settings: r}); err == nil || !strings.Contains(err.Error(), "Settings."+field) {
			t.Errorf("without %s: got %v, want an error that names it", field, err)
		}
	}
}
