package policy

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/htmlmeta"
	"robotsgate/policy/robotstag"
	"robotsgate/policy/usage"
)

func newTagCache(t *testing.T, bytes int64) *TagCache {
	t.Helper()
	c, err := NewTagCache(bytes)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestTagCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTagCache(t, 1<<20)
		defer c.Close()
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
			c.Put("http://a/", noindex, usage.Head{}, h)
			tags, ok := c.Get("http://a/")
			if !ok || len(tags.Tags.Rules) != 1 || tags.Until.Sub(tags.At) != test.want {
				t.Errorf("%q: got %+v, %v, want it for %v", test.cacheControl, tags, ok, test.want)
			}
		}
		if _, ok := c.Get("http://a/?"); ok {
			t.Error("another spelling of the URL was found")
		}
	})
}

// TestTagCacheBurst: no page that fits is dropped.
func TestTagCacheBurst(t *testing.T) {
	c := newTagCache(t, 64<<20)
	defer c.Close()
	const pages = 20_000
	for i := range pages {
		c.Put(fmt.Sprint("http://a/", i), robotstag.ParseMeta("robots", "noindex"), usage.Head{}, http.Header{})
	}
	kept := 0 // Size leaves out those that the cache takes at the moment
	for i := range pages {
		if _, ok := c.Get(fmt.Sprint("http://a/", i)); ok {
			kept++
		}
	}
	if kept != pages {
		t.Errorf("%d of %d pages are kept", kept, pages)
	}
}

// TestTagCacheMemory: the heap follows the bound.
func TestTagCacheMemory(t *testing.T) {
	const bound = 1 << 20
	c := newTagCache(t, bound)
	defer c.Close()
	long := strings.Repeat("x", 1000)
	before := heap()
	for i := range 20_000 {
		head := usage.HeadOf([]htmlmeta.Meta{{Name: "tdm-policy", Content: fmt.Sprint("https://a.example/", long, i)}}, nil)
		c.Put(fmt.Sprint("http://a/", long, i), robotstag.ParseMeta("robots", "noindex"), head, http.Header{})
	}
	if grown := heap() - before; grown > 2*bound {
		t.Errorf("the heap grew by %d bytes, the bound is %d", grown, bound)
	}
	runtime.KeepAlive(c)
}
