package snapshot

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/internal/memcache"
)

// said words an outage: its asker, what is obeyed meanwhile, why, and when
// there will be another try.
func (o Outage) said() string {
	meanwhile := string(o.State)
	if o.Allow {
		meanwhile = "allow all"
	}
	now := time.Now()
	return fmt.Sprintf("%s [%s] %s: %d %q, %d in %v, next in %v", strings.TrimPrefix(o.Origin, "http://"), o.Asker, meanwhile,
		o.Status, o.Error, o.Failures, now.Sub(o.Since), o.Next.Sub(now))
}

func outagesOf(e *engine) (all []string) {
	for _, o := range e.Outages() {
		all = append(all, o.said())
	}
	return all
}

func TestOutages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web, disk := newOrigins(), newDurable()
		refuses := func(*http.Request) (*http.Response, error) { return nil, fmt.Errorf("connection refused") }
		web.Serve("http://down.example/robots.txt", refuses)
		web.Serve("http://was-up.example/robots.txt", rules("User-agent: *\nDisallow: /x\n"))
		web.Serve("http://none.example/robots.txt", raw("HTTP/1.1 404 Not Found\n\n"))
		web.Serve("http://blocks.example/robots.txt", byCrawler(rules(""), map[string]string{
			"Bot": "HTTP/1.1 503 Oops\n\n", "Other": "HTTP/1.1 429 Too Many Requests\nRetry-After: 60\n\n"}))
		web.Serve("http://busy.example/robots.txt", raw("HTTP/1.1 503 Oops\n\n"))
		robots := defaults()
		robots.AfterStale = "allow"
		e := engineFor(t, robots, web, disk, io.Discard)
		ask := func(hosts string, agent string) {
			for host := range strings.FieldsSeq(hosts) {
				r := asks(t, "http://"+host+".example/", agent)
				r.Crawler.Tokens = r.tokens() // the site recognizes its fetch
				if _, err := e.Decide(t.Context(), r); err != nil {
					t.Error(err)
				}
			}
		}
		check := func(when string, want ...string) {
			t.Helper()
			if got := outagesOf(e); !slices.Equal(got, want) {
				t.Errorf("%s: got\n%s\nwant\n%s", when, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
		ask("was-up none", "Bot/1.0")
		check("all is well")

		ask("down busy blocks", "Bot/1.0")
		ask("blocks", "Other/1.0")
		ask("blocks", "Good/1.0")
		check("first", `blocks.example [Other] unreachable: 429 "the origin answered 429", 1 in 0s, next in 1m0s`,
			`blocks.example [Bot] unreachable: 503 "the origin answered 503", 1 in 0s, next in 5s`,
			`busy.example [Bot] unreachable: 503 "the origin answered 503", 1 in 0s, next in 5s`,
			`down.example [Bot] unreachable: 0 "connection refused", 1 in 0s, next in 5s`)
		time.Sleep(10 * time.Second) // fake clock
		ask("down", "Bot/1.0")
		check("again", `down.example [Bot] unreachable: 0 "connection refused", 2 in 10s, next in 10s`,
			`blocks.example [Other] unreachable: 429 "the origin answered 429", 1 in 10s, next in 50s`,
			`blocks.example [Bot] unreachable: 503 "the origin answered 503", 1 in 10s, next in -5s`,
			`busy.example [Bot] unreachable: 503 "the origin answered 503", 1 in 10s, next in -5s`)

		web.Serve("http://was-up.example/robots.txt", refuses)
		web.Serve("http://down.example/robots.txt", rules(""))
		web.Serve("http://busy.example/robots.txt", rules(""))
		time.Sleep(26 * time.Hour) // fake clock
		ask("was-up down busy", "Bot/1.0")
		check("the other way round", `was-up.example [Bot] stale: 0 "connection refused", 1 in 0s, next in 5s`,
			`blocks.example [Other] unreachable: 429 "the origin answered 429", 1 in 26h0m10s, next in -25h59m10s`,
			`blocks.example [Bot] unreachable: 503 "the origin answered 503", 1 in 26h0m10s, next in -26h0m5s`)

		// After a restart the list is empty, until the origin is requested.
		e.Close()
		e = engineFor(t, robots, web, disk, io.Discard)
		check("restarted")
		ask("was-up", "Bot/1.0")
		check("and asked", `was-up.example [Bot] stale: 0 "connection refused", 1 in 0s, next in 5s`)
		time.Sleep(30 * 24 * time.Hour) // fake clock
		check("too old", `was-up.example [Bot] allow all: 0 "connection refused", 1 in 720h0m0s, next in -719h59m55s`)
	})
}

// TestOutagesAreBounded: of many hosts that are down, the last are listed.
func TestOutagesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := engineFor(t, defaults(), newOrigins(), newDurable(), io.Discard)
		for i := range 3 * maxOutages {
			set := Set{}.add(&Snapshot{Fetched: time.Now(), Since: time.Now(), Failures: 1, Error: "x"})
			e.cache.put(fmt.Sprintf("http://%d.example", i), &entry{Set: set}, nil)
		}
		all := e.Outages()
		if len(all) != maxOutages || all[0].Origin != "http://149.example" || all[maxOutages-1].Origin != "http://100.example" {
			t.Errorf("got %d, from %s to %s", len(all), all[0].Origin, all[len(all)-1].Origin)
		}
	})
}

func TestCached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := newOrigins()
		web.Serve("http://a.example/robots.txt", rules("User-agent: *\n"+strings.Repeat("Disallow: /x\n", 1000)))
		e := engineFor(t, defaults(), web, newDurable(), io.Discard)
		if got, want := e.Cached(), (memcache.Size{Bound: defaults().CacheBytes}); got != want {
			t.Errorf("empty: got %+v, want %+v", got, want)
		}
		for _, host := range []string{"a", "b", "c"} {
			if _, err := e.Decide(t.Context(), asks(t, "http://"+host+".example/", "")); err != nil {
				t.Error(err)
			}
		}
		time.Sleep(time.Second) // fake clock
		if got := e.Cached(); got.Entries != 3 || got.Bytes < 13_000 || got.Bytes > 200_000 {
			t.Errorf("got %+v", got)
		}
	})
}
