package policy

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/policy/robotstag"
)

func TestTagCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, err := NewTagCache(1 << 20)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		noindex := robotstag.ParseMeta("robots", "noindex")
		for _, test := range []struct {
			cacheControl string
			want         time.Duration
		}{
			{"", 24 * time.Hour}, // if the answer does not say
			{"max-age=60", time.Minute},
			{"no-store", 0},
		} {
			h := http.Header{}
			if test.cacheControl != "" {
				h.Set("Cache-Control", test.cacheControl)
			}
			r.Put("http://a/", noindex, h)
			for _, when := range []string{"at once", "once settled"} {
				seen, ok := r.Get("http://a/")
				if !ok || len(seen.Tags.Rules) != 1 || seen.Until.Sub(seen.At) != test.want {
					t.Errorf("%q, %s: got %+v, %v, want it for %v", test.cacheControl, when, seen, ok, test.want)
				}
				time.Sleep(settleEvery)
				synctest.Wait()
			}
		}
		if _, ok := r.Get("http://a/?"); ok {
			t.Error("another spelling of the URL was found")
		}
	})
}

// What is recent does not wait for long to be settled, and not at all where it is much.
func TestTagCacheSettles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, err := NewTagCache(64 << 20)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		recent := func(want int) {
			t.Helper()
			synctest.Wait()
			r.mu.Lock()
			defer r.mu.Unlock()
			if len(r.recent) != want {
				t.Fatalf("%d are recent, want %d", len(r.recent), want)
			}
		}
		put := func(page string) { r.Put("http://a/"+page, robotstag.Tags{}, http.Header{}) }
		for i := range 3 {
			put(fmt.Sprint(i))
			recent(1)
			time.Sleep(settleEvery)
			recent(0)
		}
		put(strings.Repeat("x", mostRecent/2))
		recent(1)
		put(strings.Repeat("y", mostRecent/2))
		recent(0)
	})
}

// What is found is what was put last, whether ristretto has it, is being given it or does
// not know of it.
func TestTagCacheIsTheLast(t *testing.T) {
	r, err := NewTagCache(64 << 20)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var all, settler sync.WaitGroup
	done := make(chan struct{})
	settler.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				r.settle(1)
			}
		}
	})
	for user := range 4 {
		all.Go(func() {
			for i := range 2000 {
				url := fmt.Sprint("http://a/", user, "/", i/4)
				r.Put(url, robotstag.Tags{}, http.Header{"Cache-Control": {fmt.Sprint("max-age=", i)}})
				for range 3 {
					seen, ok := r.Get(url)
					if !ok || seen.Until.Sub(seen.At) != time.Duration(i)*time.Second {
						t.Errorf("%s: got %+v, %v, want the one that is fresh for %d s", url, seen, ok, i)
						return
					}
					runtime.Gosched()
				}
			}
		})
	}
	all.Wait()
	close(done)
	settler.Wait()
}

// No page that fits is forgotten, however many come at once: ristretto alone
// drops most of a burst.
func TestTagCacheBurst(t *testing.T) {
	r, err := NewTagCache(64 << 20)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	const pages = 20_000
	for i := range pages {
		r.Put(fmt.Sprint("http://a/", i), robotstag.ParseMeta("robots", "noindex"), http.Header{})
	}
	r.settle(1)
	lost := 0
	for i := range pages {
		if _, ok := r.Get(fmt.Sprint("http://a/", i)); !ok {
			lost++
		}
	}
	if lost > 0 {
		t.Errorf("%d of %d pages were lost", lost, pages)
	}
}

// Memory follows the bound that is given, whatever comes.
func TestTagCacheIsBounded(t *testing.T) {
	const bound = 1 << 20
	r, err := NewTagCache(bound)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	long := strings.Repeat("x", 1000)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range 20_000 {
		r.Put(fmt.Sprint("http://a/", long, i), robotstag.ParseMeta("robots", "noindex"), http.Header{})
	}
	r.settle(1)
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 4*bound {
		t.Errorf("the heap grew by %d bytes, the bound is %d", grown, bound)
	}
}

func TestTagCacheCloseUnderUse(t *testing.T) {
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 20 {
				r, err := NewTagCache(1 << 20)
				if err != nil {
					t.Error(err)
					return
				}
				var users sync.WaitGroup
				users.Go(func() {
					for i := range 50 {
						r.Put(fmt.Sprint(i), robotstag.Tags{}, http.Header{})
						r.Get(fmt.Sprint(i))
						r.settle(1)
					}
				})
				runtime.Gosched()
				r.Close()
				r.Close()
				users.Wait()
			}
		})
	}
	wg.Wait()
}
