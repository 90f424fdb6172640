package overview

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"robotsgate/policy/snapshot"
	"robotsgate/proxy"
)

// TestRefusals: the last refusals are kept, the newest first, with bounded texts.
func TestRefusals(t *testing.T) {
	o := New()
	o.Request(ended("http://a.example/allowed", allowed))
	o.Request(&proxy.Record{ID: "failed", Error: "no such host"})
	if got := o.State().Refusals; len(got) != 0 {
		t.Errorf("without refusals: %v", got)
	}
	long := strings.Repeat("x", 100_000)
	for i := range MaxRefusals + 5 {
		o.Request(&proxy.Record{ID: fmt.Sprint("id", i), Start: time.Unix(1, 0), URL: "http://a.example/" + long, Method: long, Crawler: long,
			Refused: proxy.ByGuard, Why: "prohibited " + long})
	}
	o.Request(ended("http://a.example/x", denied(7, "/x", false)))
	got := o.State().Refusals
	if len(got) != Latest || !got[0].Reported || got[0].Why != "robots.txt line 7: Disallow: /x of http://a.example/robots.txt" || got[0].Kind != "rule" {
		t.Fatalf("%d refusals, the newest is %+v", len(got), got[0])
	}
	second := got[1]
	if second.ID != "id1004" || second.Kind != "guard" || !second.Cut || second.Reported || got[Latest-1].ID != "id986" {
		t.Errorf("got %.500v", got)
	}
	if want := snapshot.Digest("http://a.example/" + long); second.Digest != want || got[0].Digest != "" {
		t.Errorf("got the digests %q and %q, want %s for the URL that is cut", second.Digest, got[0].Digest, want)
	}
	if n := len(second.URL) + len(second.Method) + len(second.Crawler) + len(second.Why); n > 4*maxText {
		t.Errorf("a refusal has %d bytes of text", n)
	}
	for id, want := range map[string]bool{"id5": false, "id6": true, "ID1004": true, "other": false} {
		if f, ok := o.Refusal(id); ok != want || ok && !strings.EqualFold(f.ID, id) {
			t.Errorf("%s: got %v, %s; want %v", id, ok, f.ID, want)
		}
	}
}

// TestCrawlers: requests are counted by crawler, the busiest first, and the number of crawlers
// is bounded.
func TestCrawlers(t *testing.T) {
	o := New()
	request := func(crawler string, x *proxy.Record) {
		x.Crawler = crawler
		o.Request(x)
	}
	request("", &proxy.Record{Refused: proxy.ByLogin})
	request("a", &proxy.Record{})
	request("b", ended("http://a.example/", allowed))
	request("b", ended("http://a.example/x", denied(1, "/x", true)))
	request("b", ended("http://a.example/x", denied(1, "/x", false)))
	got := o.State().Seen
	if len(got) != 2 || got[0].Seen.IsZero() || got[1].Name != "a" || got[1].Undecided != 1 {
		t.Fatalf("got %v", got)
	}
	got[0].Seen = time.Time{}
	if want := (Crawler{Name: "b", Requests: 3, Counts: Counts{Allowed: 1, Denied: 1, Reported: 1}}); got[0] != want {
		t.Errorf("got %+v, want %+v", got[0], want)
	}
	for i := range 2 * maxCrawlers {
		request(fmt.Sprint("crawler", i), &proxy.Record{})
	}
	if n := len(o.crawlers); n != maxCrawlers {
		t.Errorf("%d crawlers are kept, want %d", n, maxCrawlers)
	}
	if n := len(o.State().Seen); n != Crawlers {
		t.Errorf("%d crawlers are shown, want %d", n, Crawlers)
	}
}
