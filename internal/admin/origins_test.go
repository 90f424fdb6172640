package admin

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/html"

	"robotsgate/internal/store"
	"robotsgate/policy"
	"robotsgate/policy/glob"
	"robotsgate/policy/snapshot"
)

// links returns the targets of the links in a page's main part.
func links(t *testing.T, page string) (all []string) {
	t.Helper()
	_, elements := text(t, page)
	for _, main := range elements["main"] {
		for n := range main.Descendants() {
			if n.Type == html.ElementNode && n.Data == "a" {
				all = append(all, attribute(n, "href"))
			}
		}
	}
	return all
}

// TestOriginList: the origins are listed by name, a page at a time, with a search.
func TestOriginList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the page says how long ago things were
		kept := store.NewMemory(1 << 20)
		h := listener(t, &origin{status: 200, store: kept})
		has(t, see(t, h, "/origins"), "Origins with a known robots.txt", "None.")
		const more = 7
		answer := &snapshot.Snapshot{Status: 200, Fetched: time.Now()}
		for i := range maxOrigins + more {
			scope := snapshot.Scope{Origin: fmt.Sprintf("http://h%02d.example", i), Asker: "robotsgate/0"}
			save(t, kept, scope, snapshot.Set{Good: answer, Last: answer})
		}
		failed := &snapshot.Snapshot{Error: "no <answer>", Fetched: time.Now().Add(-time.Hour)}
		save(t, kept, snapshot.Scope{Origin: "https://xn--bcher-kva.example", Asker: "robotsgate/0"}, snapshot.Set{Last: failed})

		first := see(t, h, "/origins")
		has(t, first, "http://h00.example status 200, just now http://h01.example status 200, just now")
		all := links(t, first)
		if len(all) != maxOrigins+1 || all[0] != "/origin?origin=http%3a%2f%2fh00.example" {
			t.Fatalf("%d links, the first %q", len(all), all[0])
		}
		second := see(t, h, all[maxOrigins])
		has(t, second, fmt.Sprintf("http://h%d.example", maxOrigins+more-1), "https://xn--bcher-kva.example no <answer> , 1 h ago")
		if got := links(t, second); len(got) != more+2 || got[len(got)-1] != "/origins?search=" {
			t.Errorf("the last page has the links %q", got)
		}
		for search, want := range map[string]string{
			"H31": "[/origin?origin=http%3a%2f%2fh31.example]", "http://h07.example/page?x": "[/origin?origin=http%3a%2f%2fh07.example]",
			" bücher.example ": "[/origin?origin=https%3a%2f%2fxn--bcher-kva.example]", "other": "[]",
		} {
			if got := fmt.Sprint(links(t, see(t, h, "/origins?search="+url.QueryEscape(search)))); got != want {
				t.Errorf("%q: got %s, want %s", search, got, want)
			}
		}
		page := see(t, h, "/origins?search="+url.QueryEscape("\"><script>\u202e")+"&from="+url.QueryEscape("\x00<b>"))
		if has(t, page, `with "><script>\u202e in their name`); strings.Contains(page, "<script>") {
			t.Error("a text has become markup")
		}
		if w := ask(h, "GET", "192.0.2.1:9310", "/origins", "Sec-Fetch-Site", "cross-site"); w.Code != http.StatusForbidden {
			t.Errorf("from another site: got %d", w.Code)
		}
	})
}

func save(t *testing.T, s snapshot.Store, scope snapshot.Scope, r snapshot.Set) {
	t.Helper()
	if err := s.Save(t.Context(), map[string]snapshot.Set{scope.Key(): r}); err != nil {
		t.Fatal(err)
	}
}

// partOf is a store with a list of several parts.
type partOf struct{ snapshot.Store }

func (partOf) Origins(context.Context, string, string, int) ([]string, string, error) {
	return nil, "a&b", nil
}

// TestPartOfOrigins: the page says that a search has not looked at all origins.
func TestPartOfOrigins(t *testing.T) {
	h := listener(t, &origin{status: 200, store: partOf{store.NewMemory(1 << 20)}})
	page := see(t, h, "/origins?search=x")
	has(t, page, "None so far. Only a part of the origins was searched. Search the others")
	if got := fmt.Sprint(links(t, page)); got != "[/origins?search=x&from=a%26b]" {
		t.Errorf("the links are %s", got)
	}
}

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
		if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/origin?origin=http%3A%2F%2Fa.example" || o.fetches != 1 {
			t.Errorf("Refresh: got %d to %s, %d fetches", w.Code, w.Header().Get("Location"), o.fetches)
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
		if o.fetches != 1 {
			t.Errorf("%d fetches", o.fetches)
		}
	})
}

// TestOriginPageInUTF16: a file that can't be shown as lines has a link to the API.
func TestOriginPageInUTF16(t *testing.T) {
	h := listener(t, &origin{status: 200, body: "\xff\xfeU\x00\n\x00"})
	const path = "/origin?origin=http://a.example"
	ask(h, "POST", "192.0.2.1:9310", path, "Sec-Fetch-Site", "same-origin")
	has(t, see(t, h, path), "It is in UTF-16 or broken, so that it is shown as JSON only.")
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
		if has(t, see(t, h, path), "fetched just now", "Fetches it now, with each User-Agent that has an answer."); o.fetches != 3 {
			t.Errorf("%d fetches, want one, and one for each asker", o.fetches)
		}
	})
}
