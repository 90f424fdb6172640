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
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/policy/internal/origintest"
)

const (
	forbidden   = "HTTP/1.1 403 Forbidden\n\n"
	tooMany     = "HTTP/1.1 429 Too Many Requests\n\n"
	unavailable = "HTTP/1.1 503 Service Unavailable\n\n"
)

// TestManyAtOnce: a thousand requests at once cost one fetch and wait as long as it takes, whatever is answered.
func TestManyAtOnce(t *testing.T) {
	for answer, test := range map[string]struct {
		takes, waits time.Duration
		want         string
	}{
		denyAll:                      {time.Second, time.Second, denied},
		varying(denyAll):             {time.Second, time.Second, denied},
		"HTTP/1.1 404 Not Found\n\n": {time.Second, time.Second, none},
		"HTTP/1.1 200 OK\nCache-Control: no-store\n\nUser-agent: *\nDisallow: /\n": {time.Second, time.Second, denied},
		"":          {time.Hour, 10 * time.Second, unreachable},
		unavailable: {9 * time.Second, 9 * time.Second, unreachable},
		tooMany:     {time.Second, time.Second, unreachable},
		forbidden:   {time.Second, time.Second, none},
	} {
		synctest.Test(t, func(t *testing.T) {
			web, r := newOrigins(), defaults()
			web.Serve(example, slow(test.takes, raw(answer)))
			r.MinAge = 0
			e := engineFor(t, r, web, newDurable(), io.Discard)
			var all sync.WaitGroup
			begun := time.Now()
			for i := range 1000 {
				all.Go(func() {
					got := verdict(e.Decide(t.Context(), asks(t, "https://example.com/", fmt.Sprintf("Bot-%d/1.0", i))))
					if waited := time.Since(begun); got != test.want || waited != test.waits {
						t.Errorf("%q: got %q after %v, want %q after %v", answer, got, waited, test.want, test.waits)
					}
				})
			}
			all.Wait()
			time.Sleep(time.Hour) // fake clock: for fetches that no request waits for
			if n := len(web.Fetched()); n != 1 {
				t.Errorf("%q: %d fetches, want 1", answer, n)
			}
		})
	}
}

// TestCancelledRequests: a fetch is for all requests that wait for it, so none of them ends it.
func TestCancelledRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := newOrigins()
		web.Serve(example, slow(5*time.Second, raw(denyAll)))
		e := engineFor(t, defaults(), web, newDurable(), io.Discard)
		r := asks(t, "https://example.com/", "Bot/1.0")
		var all sync.WaitGroup
		for _, test := range []struct {
			patience time.Duration
			want     string
		}{
			{time.Second, "error deadline"}, // the first request ends first
			{2 * time.Second, "error deadline"},
			{time.Minute, denied},
		} {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), test.patience)
				defer cancel()
				if got := verdict(e.Decide(ctx, r)); got != test.want {
					t.Errorf("got %q, want %q", got, test.want)
				}
			})
			synctest.Wait()
		}
		all.Wait()
		if got := web.Fetched(); len(got) != 1 {
			t.Errorf("%d fetches, want 1", len(got))
		}
	})
}

// TestRenewal: no request waits for a renewal in the background, and there is only one.
func TestRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := newOrigins()
		web.Serve(example, slow(5*time.Second, raw(denyAll)))
		e := engineFor(t, defaults(), web, newDurable(), io.Discard)
		r := asks(t, "https://example.com/", "Bot/1.0")
		e.Decide(t.Context(), r)
		time.Sleep(23 * time.Hour) // fake clock
		before := time.Now()
		for range 1000 {
			if got := verdict(e.Decide(t.Context(), r)); got != denied {
				t.Errorf("got %q, want %q", got, denied)
			}
		}
		if took := time.Since(before); took != 0 {
			t.Errorf("requests waited %v for a renewal", took)
		}
		time.Sleep(6 * time.Second) // fake clock
		if d, _ := e.Decide(t.Context(), r); d.Robots.Age > 5*time.Second {
			t.Errorf("age %v after the renewal", d.Robots.Age)
		}
		if got := web.Fetched(); len(got) != 2 {
			t.Errorf("%d fetches, want 2", len(got))
		}
	})
}

// TestRefresh fetches in any case, but never beside another fetch.
func TestRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := newOrigins()
		web.Serve(example, slow(2*time.Second, raw(denyAll)))
		e := engineFor(t, defaults(), web, newDurable(), io.Discard)
		r := asks(t, "https://example.com/", "Bot/1.0")
		var all sync.WaitGroup
		all.Go(func() { e.Decide(t.Context(), r) })
		time.Sleep(time.Second) // fake clock
		for range 10 {
			all.Go(func() {
				asked := time.Now()
				st, err := e.Refresh(t.Context(), r)
				if err != nil || st.State != Fresh || st.File == nil || st.Snapshot.Fetched.Before(asked) {
					t.Errorf("got %+v, %v", st, err)
				}
			})
		}
		all.Wait()
		// The answer of the fetch that was under way came after the refreshes began, so it counts.
		if got := web.Fetched(); len(got) != 1 {
			t.Errorf("%d fetches, want 1", len(got))
		}
		if _, err := e.Refresh(t.Context(), r); err != nil {
			t.Error(err)
		}
		if got := web.Fetched(); len(got) != 1 {
			t.Errorf("%d fetches, want 1", len(got))
		}
		prohibited := origintest.Fault{Text: "prohibited", Origin: true}
		web.Serve(example, origintest.Fails(fmt.Errorf("dial: %w", prohibited)))
		if _, err := e.Refresh(t.Context(), r); !errors.Is(err, prohibited) {
			t.Errorf("got %v, want that the destination is prohibited", err)
		}
	})
}

// TestClose ends fetches: requests that wait for one get an error, and a fetch that was cut
// short is not taken for a failure of the origin.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web, s := newOrigins(), newDurable()
		web.Serve(example, slow(5*time.Second, rules("")))
		e := engineFor(t, defaults(), web, s, io.Discard)
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				if got, want := verdict(e.Decide(t.Context(), asks(t, "https://example.com/", "Bot/1.0"))), "error other"; got != want {
					t.Errorf("got %q, want %q", got, want)
				}
			})
		}
		synctest.Wait()
		e.Close()
		all.Wait()
		if _, ok := s.Load(t.Context(), "https://example.com robotsgate/0"); ok {
			t.Error("a fetch that was cut short is kept")
		}
		// Late requests get an error and do no harm.
		if _, err := e.Decide(t.Context(), asks(t, "https://example.com/", "Bot/1.0")); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want canceled", err)
		}
		e.Outdate(Query{Scope: Scope{Origin: "https://b.example"}}, false, time.Now())
		if n := len(web.Fetched()); n != 1 {
			t.Errorf("%d fetches, want 1", n)
		}
	})
}

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
		for _, want := range []int{n, 0, 0} {
			var all sync.WaitGroup
			for i := range n {
				all.Go(func() {
					if got := verdict(e.Decide(t.Context(), asks(t, fmt.Sprintf("https://%d.example/%d/", i, i), "Bot/1.0"))); got != denied {
						t.Errorf("origin %d: got %q", i, got)
					}
				})
			}
			all.Wait()
			if got := len(web.Fetched()); got != want {
				t.Errorf("%d fetches, want %d", got, want)
			}
		}
	})
}

// TestSavesBeforeItAnswers: what a request is decided by is in the store already.
func TestSavesBeforeItAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web, s := newOrigins(), newDurable()
		e := engineFor(t, defaults(), web, s, io.Discard)
		for _, answer := range []string{denyAll, unavailable, "HTTP/1.1 404 Not Found\n\n"} {
			web.Serve(example, raw(answer))
			res, err := e.Refresh(t.Context(), asks(t, "https://example.com/", "Bot/1.0"))
			if set, _ := s.Load(t.Context(), "https://example.com robotsgate/0"); err != nil || set.Last == nil || set.Last.Status != res.Answer.Status {
				t.Errorf("%q: the store has %+v, %v", answer, set.Last, err)
			}
		}
	})
}

// TestLowerLimit: a file that was kept under a higher limit is fetched again, since what the limit leaves of it must be in
// the store before a request is decided by it.
func TestLowerLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web, s := newOrigins(), newDurable()
		web.Serve(example, raw("HTTP/1.1 200 OK\n\n"+strings.Repeat("# a comment\n", 50_000)+"User-agent: *\nDisallow: /\n"))
		request := asks(t, "https://example.com/", "Bot/1.0")
		for i, limit := range []int64{1 << 20, 1 << 20, 500 << 10} {
			r := defaults()
			r.MaxBytes = limit
			e := engineFor(t, r, web, s, io.Discard)
			d, err := e.Decide(t.Context(), request)
			set, _ := s.Load(t.Context(), "https://example.com robotsgate/0")
			if err != nil || d.Robots.File.Truncated() != (limit < 1<<20) || d.Robots.Snapshot.SHA256 != set.Good.SHA256 {
				t.Errorf("limit %d: %v, truncated %v, decided by %s, kept %s", limit, err, d.Robots.File.Truncated(), d.Robots.Snapshot.SHA256, set.Good.SHA256)
			}
			if n, want := len(web.Fetched()), []int{1, 0, 1}[i]; n != want {
				t.Errorf("limit %d: %d fetches, want %d", limit, n, want)
			}
			e.Close()
		}
	})
}

// TestStoreFails: requests are decided as before, the failure is logged once a minute, and
// no set is lost when the store works again.
func TestStoreFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web, s := newOrigins(), newDurable()
		web.Serve(example, raw(denyAll))
		s.fail(errors.New("no space left on device"))
		var log bytes.Buffer
		r := defaults()
		r.CacheBytes = 10_000 // the cache keeps nothing for long
		e := engineFor(t, r, web, s, &log)
		request := asks(t, "https://example.com/", "Bot/1.0")
		for range 600 {
			if got := verdict(e.Decide(t.Context(), request)); got != denied {
				t.Fatalf("got %q, want %q", got, denied)
			}
			time.Sleep(time.Second) // fake clock
		}
		e.Refresh(t.Context(), request)
		synctest.Wait()
		if n := strings.Count(log.String(), "no space left on device"); n < 9 || n > 11 {
			t.Errorf("%d lines in the log in ten minutes, want 10", n)
		}
		if n := len(web.Fetched()); n != 2 || e.SaveError() == nil {
			t.Errorf("%d fetches, want 2; SaveError %v", n, e.SaveError())
		}
		s.fail(nil)
		time.Sleep(6 * time.Second) // fake clock
		synctest.Wait()
		if _, ok := s.Load(t.Context(), "https://example.com robotsgate/0"); !ok || e.SaveError() != nil {
			t.Errorf("it is not saved although it can be: %v", e.SaveError())
		}
		if !strings.Contains(log.String(), "snapshots are saved again") {
			t.Errorf("the log has\n%s", log.String())
		}
	})
}

// TestKeyID: what an origin answers to one of two crawlers that send the same User-Agent, and sign with keys of their own,
// decides for this one only, also after a restart.
func TestKeyID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web, s := newOrigins(), newDurable()
		e := engineFor(t, defaults(), web, s, io.Discard)
		ask := func(key, want string) {
			t.Helper()
			r := asks(t, "https://example.com/page", "Bot/1.0")
			r.Crawler.KeyID = key
			if got := verdict(e.Decide(t.Context(), r)); got != want {
				t.Errorf("with key %q: got %q, want %q", key, got, want)
			}
		}
		web.Serve(example, raw(forbidden))
		ask("first", none)
		web.Serve(example, raw(denyAll))
		ask("second", denied)
		ask("first", none)
		e.Close()
		e = engineFor(t, defaults(), web, s, io.Discard)
		ask("first", none)
		ask("second", denied)
		ask("", denied)
		if n := len(web.Fetched()); n != 3 {
			t.Errorf("%d fetches, want 3", n)
		}
	})
}

// TestOutages: the list has the origins that can't be fetched from, what is obeyed meanwhile, and when there will be
// another try.
func TestOutages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web, robots := newOrigins(), defaults()
		refused := origintest.Fails(errors.New("connection refused"))
		for name, answer := range map[string]origintest.Answer{
			"down": refused, "was-up": raw(denyAll), "busy": raw("HTTP/1.1 429 Too Many Requests\nRetry-After: 60\n\n"), "none": nil, "forbids": raw(forbidden),
		} {
			web.Serve("http://"+name+".example/robots.txt", answer)
		}
		robots.AfterStale = "allow"
		e := engineFor(t, robots, web, newDurable(), io.Discard)
		check := func(ask string, want ...string) {
			t.Helper()
			for name := range strings.FieldsSeq(ask) {
				if _, err := e.Decide(t.Context(), asks(t, "http://"+name+".example/", "Bot/1.0")); err != nil {
					t.Error(err)
				}
			}
			var got []string
			for _, o := range e.Outages() {
				got = append(got, fmt.Sprintf("%s [%s] %s %v: %d %s, %d in %v, next in %v", o.Origin, o.Asker, o.State, o.Allow,
					o.Status, o.Error, o.Failures, time.Since(o.Since), time.Until(o.Next)))
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("asked for %q: got\n%s\nwant\n%s", ask, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
		check("was-up none forbids")
		check("busy down",
			"http://busy.example [robotsgate/0] unreachable false: 429 the origin answered 429, 1 in 0s, next in 1m0s",
			"http://down.example [robotsgate/0] unreachable false: 0 connection refused, 1 in 0s, next in 5s")
		time.Sleep(10 * time.Second) // fake clock
		check("down",
			"http://down.example [robotsgate/0] unreachable false: 0 connection refused, 2 in 10s, next in 10s",
			"http://busy.example [robotsgate/0] unreachable false: 429 the origin answered 429, 1 in 10s, next in 50s")
		web.Serve("http://was-up.example/robots.txt", refused)
		web.Serve("http://down.example/robots.txt", raw(denyAll))
		web.Serve("http://busy.example/robots.txt", raw(denyAll))
		time.Sleep(26 * time.Hour) // fake clock
		check("was-up down busy", "http://was-up.example [robotsgate/0] stale false: 0 connection refused, 1 in 0s, next in 5s")
		time.Sleep(30 * 24 * time.Hour) // fake clock
		check("", "http://was-up.example [robotsgate/0] unreachable true: 0 connection refused, 1 in 720h0m0s, next in -719h59m55s")
		for i := range 2 * maxOutages {
			url := fmt.Sprintf("http://%d.example/", i)
			web.Serve(url+"robots.txt", refused)
			e.Decide(t.Context(), asks(t, url, "Bot/1.0"))
			time.Sleep(time.Second) // fake clock
		}
		if all := e.Outages(); len(all) != maxOutages || all[0].Origin != "http://99.example" {
			t.Errorf("of many there are %d, the first is %v", len(all), all[0])
		}
	})
}

// byCrawler answers by the first product of the User-Agent, and all others in a common way.
func byCrawler(common func(*http.Request) (*http.Response, error), named map[string]string) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		name, _, _ := strings.Cut(r.Header.Get("User-Agent"), "/")
		if text, ok := named[name]; ok {
			return raw(text)(r)
		}
		return common(r)
	}
}
