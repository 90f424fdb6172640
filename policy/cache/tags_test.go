package cache

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/htmlmeta"
	"robotsgate/internal/gatetest"
	"robotsgate/policy/robotstag"
	"robotsgate/policy/usage"
)

func TestCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewTags(1 << 20)
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
			c.Put("http://a/", nil, h, "text/html", noindex, usage.Head{})
			tags, ok := c.Get("http://a/", nil, nil, "")
			if !ok || len(tags.Tags.Rules) != 1 || tags.Until.Sub(tags.At) != test.want {
				t.Errorf("%q: got %+v, %v, want it for %v", test.cacheControl, tags, ok, test.want)
			}
		}
		if _, ok := c.Get("http://a/?", nil, nil, ""); ok {
			t.Error("another spelling of the URL was found")
		}
	})
}

// TestVariants: an answer without a page finds the tags of its own variant only.
func TestVariants(t *testing.T) {
	for _, test := range []struct {
		name              string
		request, answer   string // of the page
		request2, answer2 string // of the answer without one
		mediaType         string // of the latter
		want              bool
	}{
		{name: "no Vary", request: "Cookie: a", request2: "Cookie: b", want: true},
		{name: "the same type", mediaType: "text/html", want: true},
		{name: "another type", mediaType: "application/json"},
		{name: "the same field", request: "Accept-Language: de", answer: "Vary: accept-language", request2: "Accept-Language: de", want: true},
		{name: "another value", request: "Accept-Language: de", answer: "Vary: Accept-Language", request2: "Accept-Language: en"},
		{name: "no field", request: "Accept-Language: de", answer: "Vary: Accept-Language"},
		{name: "one field of two", request: "A: 1; B: 1", answer: "Vary: A, B", request2: "A: 1; B: 2"},
		{name: "two lines of Vary", request: "A: 1; B: 1", answer: "Vary: A; Vary: B", request2: "A: 1; B: 2"},
		{name: "both fields", request: "A: 1; B: 1", answer: "Vary: B, A", request2: "A: 1; B: 1", answer2: "Vary: A", want: true},
		{name: "values across fields", request: "A: 1; A: 2", answer: "Vary: A, B", request2: "A: 1; B: 2"},
		{name: "any", answer: "Vary: *"},
		{name: "any among others", answer: "Vary: A, *"},
		{name: "a signature", answer: "Vary: Signature"},
		{name: "too long", answer: "Vary: " + strings.Repeat("a", 600)},
		{name: "empty", answer: "Vary: ,", want: true},
		{name: "the answer varies by anything", answer2: "Vary: *"},
		{name: "the answer varies by more", request: "A: 1; B: 1", answer: "Vary: A", request2: "A: 1; B: 1", answer2: "Vary: A, B"},
		{name: "only the answer varies", answer2: "Vary: A"},
		{name: "the same ETag", answer: "ETag: \"x\"", answer2: "ETag: W/\"x\"", want: true},
		{name: "another ETag", answer: "ETag: \"x\"", answer2: "ETag: \"y\""},
		{name: "another Last-Modified", answer: "Last-Modified: Mon, 23 Nov 2026 08:00:00 GMT", answer2: "Last-Modified: Tue, 24 Nov 2026 08:00:00 GMT"},
		{name: "no ETag", answer: "ETag: \"x\"", want: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := NewTags(1 << 20)
			c.Put("http://a/", fields(test.request), fields(test.answer), "text/html", robotstag.ParseMeta("robots", "noindex"), usage.Head{})
			if _, ok := c.Get("http://a/", fields(test.request2), fields(test.answer2), test.mediaType); ok != test.want {
				t.Errorf("found: %v", ok)
			}
		})
	}
	t.Run("side by side", func(t *testing.T) {
		c := NewTags(1 << 20)
		for _, value := range []string{"noindex", "nofollow"} {
			c.Put("http://a/", fields("A: "+value), fields("Vary: A"), "text/html", robotstag.ParseMeta("robots", value), usage.Head{})
		}
		for _, value := range []string{"noindex", "nofollow"} {
			if seen, ok := c.Get("http://a/", fields("A: "+value), nil, ""); !ok || seen.Tags.Rules[0].Name != value {
				t.Errorf("%s: got %+v, %v", value, seen, ok)
			}
		}
		c.Put("http://a/", nil, fields("Vary: *"), "text/html", robotstag.Tags{}, usage.Head{})
		if _, ok := c.Get("http://a/", fields("A: noindex"), nil, ""); ok {
			t.Error("a variant was found although the URL varies by anything")
		}
	})
}

// fields returns a header of lines that are separated by semicolons.
func fields(lines string) http.Header {
	h := http.Header{}
	for line := range strings.SplitSeq(lines, "; ") {
		if name, value, ok := strings.Cut(line, ": "); ok {
			h.Add(name, value)
		}
	}
	return h
}

// TestMemory: the heap follows the bound.
func TestMemory(t *testing.T) {
	const bound = 1 << 20
	c := NewTags(bound)
	long := strings.Repeat("x", 1000)
	before := gatetest.Heap()
	for i := range 20_000 {
		head := usage.HeadOf([]htmlmeta.Meta{{Name: "tdm-policy", Content: fmt.Sprint("https://a.example/", long, i)}}, nil)
		c.Put(fmt.Sprint("http://a/", long, i), nil, nil, "text/html", robotstag.ParseMeta("robots", "noindex"), head)
	}
	if grown := gatetest.Heap() - before; grown > 2*bound {
		t.Errorf("the heap grew by %d bytes, the bound is %d", grown, bound)
	}
	runtime.KeepAlive(c)
}

func TestSize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewTags(1 << 20)
		r.Put("http://a.example/", nil, nil, "text/html", robotstag.ParseMeta("robots", "noindex"), usage.Head{})
		time.Sleep(time.Second) // fake clock
		if got := r.Size(); got.Entries != 1 || got.Bytes < 250 || got.Bytes > 1000 || got.Bound != 1<<20 {
			t.Errorf("tags: got %+v", got)
		}
	})
}

// TestRestored: what Kept returns, through JSON, has the pages of another cache, and of each variant the newest.
func TestRestored(t *testing.T) {
	for _, all := range []bool{false, true} {
		c, next := NewTags(1<<20), NewTags(1<<20)
		if first := c.Kept(false); len(first) != 0 {
			t.Errorf("an empty cache has %v", first)
		}
		head := usage.HeadOf([]htmlmeta.Meta{{Name: "tdm-reservation", Content: "1"}}, nil)
		answer := fields("Vary: A; ETag: W/\"x\"; Last-Modified: Mon, 23 Nov 2026 08:00:00 GMT")
		for _, value := range []string{"noarchive", "noindex", "nofollow"} {
			c.Put("http://a/", fields("A: "+value[:4]), answer, "text/html", robotstag.ParseMeta("robots", value), head)
		}
		c.Put("http://b/", nil, fields("Vary: *"), "text/html", robotstag.ParseMeta("robots", "noindex"), head)
		for _, p := range c.Kept(all) {
			line, err := json.Marshal(p)
			var restored *Page
			if err != nil || json.Unmarshal(line, &restored) != nil {
				t.Fatalf("%s, %v", line, err)
			}
			next.Restore(restored)
		}
		next.Restore(nil)
		next.Restore(&Page{})
		for _, value := range []string{"noarchive", "noindex", "nofollow"} {
			want, _ := c.Get("http://a/", fields("A: "+value[:4]), answer, "text/html")
			got, ok := next.Get("http://a/", fields("A: "+value[:4]), answer, "text/html")
			if !ok || got.Tags.Rules[0].Name != value || !reflect.DeepEqual(got.Head, head) || !got.Until.Equal(want.Until) || got.At.After(time.Now()) {
				t.Errorf("all %v: got %+v, want %+v", all, got, want)
			}
		}
		if again := c.Kept(false); len(again) > 0 {
			t.Errorf("all %v: the same pages again: %v", all, again)
		}
	}
}

// TestRestoredLate: a page that is restored takes no newer one's place, and Get waits until all are restored.
func TestRestoredLate(t *testing.T) {
	c := NewTags(1 << 20)
	c.Kept(false)
	restored := make(chan struct{})
	c.Await = func() { <-restored }
	put := func(url string) {
		c.Put(url, nil, nil, "text/html", robotstag.ParseMeta("robots", "noindex"), usage.Head{})
	}
	put("http://a/")
	go func() {
		defer close(restored)
		for _, url := range []string{"http://a/", "http://b/"} {
			c.Restore(&Page{Key: url, Tags: robotstag.ParseMeta("robots", "nofollow"), At: time.Now()})
		}
		for i := range 1000 { // at the same time
			url := fmt.Sprint("http://c/", i)
			var both sync.WaitGroup
			both.Go(func() { put(url) })
			both.Go(func() { c.Restore(&Page{Key: url}) })
			both.Wait()
		}
	}()
	for url, want := range map[string]string{"http://a/": "noindex", "http://b/": "nofollow", "http://c/7": "noindex"} {
		if p, ok := c.Get(url, nil, nil, ""); !ok || p.Tags.Rules[0].Name != want {
			t.Errorf("%s: got %+v, want %s", url, p, want)
		}
	}
	for i := range 1000 {
		if p, ok := c.Get(fmt.Sprint("http://c/", i), nil, nil, ""); ok && len(p.Tags.Rules) == 0 {
			t.Errorf("page %d is that of an earlier process", i)
		}
	}
}

// TestPushedOut: a full cache drops the pages that were put and requested longest ago, and never the newest.
func TestPushedOut(t *testing.T) {
	const bound = 100 << 10
	c := NewTags(bound)
	for i := range 2000 {
		url := fmt.Sprint("http://a/", i)
		c.Put(url, nil, nil, "text/html", robotstag.Tags{}, usage.Head{})
		for _, kept := range []string{url, "http://a/0"} {
			if _, ok := c.Get(kept, nil, nil, ""); !ok {
				t.Fatalf("%s is gone after page %d", kept, i)
			}
		}
		if s := c.Size(); s.Bytes > bound || s.Entries > bound/400 {
			t.Fatalf("got %+v", s)
		}
	}
	if _, ok := c.Get("http://a/1", nil, nil, ""); ok {
		t.Error("an old page is kept")
	}
	if s := c.Size(); s.Bytes < bound/3 || len(c.Kept(true)) != s.Entries {
		t.Errorf("got %+v", s)
	}
}
