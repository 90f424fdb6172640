package admin

import (
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"robotsgate/policy"
	"robotsgate/policy/glob"
)

// TestOriginPage: an origin has a page with the lines of its robots.txt and a button that
// fetches it again.
func TestOriginPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the page says how long ago things were
		o := &origin{status: 200, body: "User-agent: *\nDisallow: /<script>alert(1)</script>\u202e\n" + strings.Repeat("#\n", 2*maxLines)}
		h := listener(t, o)
		const path = "/origin?origin=http://a.example"
		if w := ask(h, "GET", "192.0.2.1:9310", path); w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "no robots.txt of http://a.example is known yet") {
			t.Errorf("before a fetch: got %d, %s", w.Code, w.Body)
		}
		w := ask(h, "POST", "192.0.2.1:9310", path, "Sec-Fetch-Site", "same-origin")
		if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/origin?origin=http%3A%2F%2Fa.example" || atomic.LoadInt64(&o.fetches) != 1 {
			t.Errorf("Refresh: got %d to %s, %d fetches", w.Code, w.Header().Get("Location"), atomic.LoadInt64(&o.fetches))
		}
		page := see(t, h, path)
		has(t, page, "http://a.example", "As the origin answers robotsgate/0 : fresh, status 200, fetched just now", "Refresh",
			`User-agent: * Disallow: /<script>alert(1)</script>\u202e #`, "2 002 more lines: as JSON")
		_, elements := text(t, page)
		if !strings.Contains(page, `<li id="l2"><bdi>Disallow: `) {
			t.Error("a link to line 2 leads nowhere")
		}
		if len(elements["script"]) != 0 || len(elements["li"]) != maxLines {
			t.Errorf("%d scripts and %d lines", len(elements["script"]), len(elements["li"]))
		}
		for _, method := range []string{"GET", "POST"} {
			if w := ask(h, method, "192.0.2.1:9310", path, "Sec-Fetch-Site", "cross-site"); w.Code != http.StatusForbidden {
				t.Errorf("%s from another site: got %d", method, w.Code)
			}
			if w := ask(h, method, "evil.example", path); w.Code != http.StatusForbidden {
				t.Errorf("%s with another Host: got %d", method, w.Code)
			}
			if w := ask(h, method, "192.0.2.1:9310", "/origin?origin=x"); w.Code != http.StatusBadRequest {
				t.Errorf("%s of no origin: got %d", method, w.Code)
			}
		}
		if atomic.LoadInt64(&o.fetches) != 1 {
			t.Errorf("%d fetches", atomic.LoadInt64(&o.fetches))
		}
	})
}

// TestOriginPageOfCrawlers: a robots.txt that only configured crawlers have is shown for the first
// of them, and a refresh fetches it again.
func TestOriginPageOfCrawlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the page says how long ago things were
		o := &origin{status: 200, body: rules, refuse: true, crawlers: []*policy.Crawler{{Name: "news <b>", UserAgents: []glob.Glob{glob.Text("News*")}, Tokens: []string{"NewsBot"}}}}
		h := listener(t, o)
		ask(h, "GET", "192.0.2.1:9310", "/api/decision?url=http://a.example/&crawler="+url.QueryEscape("news <b>"))
		const path = "/origin?origin=http://a.example"
		has(t, see(t, h, path), "As the origin answers NewsBot : fresh, status 200, fetched just now User-agent: *")
		ask(h, "POST", "192.0.2.1:9310", path)
		if has(t, see(t, h, path), "fetched just now", "Fetches it now, with each User-Agent that has an answer."); atomic.LoadInt64(&o.fetches) != 3 {
			t.Errorf("%d fetches, want one, and one for each asker", atomic.LoadInt64(&o.fetches))
		}
	})
}
