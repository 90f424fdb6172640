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
			scope := snapshot.Scope{Origin: fmt.Sprintf("http://h%02d.example", i), Crawlers: i%2 == 0}
			save(t, kept, scope, snapshot.Record{Good: answer, Last: answer})
		}
		failed := &snapshot.Snapshot{Error: "no <answer>", Fetched: time.Now().Add(-time.Hour)}
		save(t, kept, snapshot.Scope{Origin: "https://xn--bcher-kva.example"}, snapshot.Record{Bound: map[string]*snapshot.Snapshot{"bot": failed}})

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

func save(t *testing.T, s snapshot.Store, scope snapshot.Scope, r snapshot.Record) {
	t.Helper()
	if err := s.Save(t.Context(), map[string]snapshot.Record{scope.Key(): r}); err != nil {
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
