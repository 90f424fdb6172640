package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/internal/gatetest"
)

// sites is a RoundTripper for any number of origins, which answers by their names.
type sites func(host string) (status int, robots string)

func (s sites) RoundTrip(r *http.Request) (*http.Response, error) {
	status, robots := s(r.URL.Host)
	return &http.Response{
		StatusCode: status, Header: http.Header{}, ContentLength: int64(len(robots)), Request: r,
		Body: io.NopCloser(strings.NewReader(robots)),
	}, nil
}

// emptyStore keeps nothing, so that everything in memory is the cache's.
type emptyStore struct {
	noStore
	err error
}

func (s emptyStore) Save(context.Context, string, Set) error { return s.err }

// usual is a robots.txt of 1.5 KB.
func usual(host string) (int, string) {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\nUser-agent: *\n", host)
	for i := 0; b.Len() < 1536; i++ {
		fmt.Fprintf(&b, "Disallow: /section-%d/private/\n", i)
	}
	return http.StatusOK, b.String()
}

func ask(tb testing.TB, e *engine, url, agent string) {
	tb.Helper()
	if _, err := e.Decide(tb.Context(), asks(tb, url, agent)); err != nil {
		tb.Fatal(err)
	}
}

// TestCacheBound: with 64 MiB the heap grows by 128 MiB at most, for all kinds of files, and
// whether or not they can be saved.
func TestCacheBound(t *testing.T) {
	gatetest.Long(t)
	if gatetest.RaceDetector {
		t.Skip("it measures memory, and takes long under the race detector")
	}
	repeated := func(line string, bytes int) func(string) (int, string) {
		return func(host string) (int, string) {
			return http.StatusOK, "# " + host + "\nUser-agent: *\n" + strings.Repeat(line, bytes/len(line))
		}
	}
	manyNames := func(host string) (int, string) {
		var b strings.Builder
		for i := 0; b.Len() < 100<<10; i++ {
			fmt.Fprintf(&b, "User-agent: %s-%d\nAllow:/\n", "b", i)
		}
		return http.StatusOK, "# " + host + "\n" + b.String()
	}
	none := func(string) (int, string) { return http.StatusNotFound, "" }
	long := strings.Repeat(strings.Repeat("x", 60)+".", 3)
	full := errors.New("no space left on device")
	for name, c := range map[string]struct {
		answer func(string) (int, string)
		err    error  // of the store
		prefix string // of the hosts
		n      int
	}{
		"huge files":             {repeated("# nothing but comments, as long as it may be\n", 600<<10), nil, "", 300},
		"huge files, disk full":  {repeated("# nothing but comments, as long as it may be\n", 600<<10), full, "", 300},
		"tiny rules":             {repeated("Allow:/\n", 500<<10), nil, "", 200},
		"tiny rules, disk full":  {repeated("Allow:/\n", 500<<10), full, "", 120},
		"odd rules":              {repeated("Allow:/%7e$$*ü\n", 500<<10), nil, "", 120},
		"many names":             {manyNames, nil, "", 200},
		"usual files":            {usual, nil, "", 28_000},
		"none, under long names": {none, nil, long, 110_000},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				before := gatetest.Heap()
				r := defaults()
				r.CacheBytes = 64 << 20
				e := engineWith(t, Config{Settings: r, Transport: sites(c.answer), Store: emptyStore{err: c.err}})
				var grown int64
				for half := range 2 {
					for i := range c.n / 2 {
						ask(t, e, fmt.Sprintf("https://%s%d.example/", c.prefix, half*c.n+i), "Bot/1.0")
					}
					// No time has passed, so all entries wait for the store. Fetches have ended.
					synctest.Wait()
					grown = gatetest.Heap() - before
					t.Logf("half %d: %d MiB", half+1, grown>>20)
					if grown > 128<<20 {
						t.Errorf("after half %d the heap has grown by %d MiB", half+1, grown>>20)
					}
					time.Sleep(time.Second) // fake clock
				}
				if grown < 50<<20 { // the costs that fill it are estimates
					t.Errorf("the heap has grown by %d MiB only: that has not filled the cache", grown>>20)
				}
			})
		})
	}
}
