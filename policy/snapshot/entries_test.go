package snapshot

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// marked adds a header to the fetches of a crawler, by which a site can tell it from another one with the same product
// token by its signature.
type marked struct {
	http.RoundTripper
	name string
}

func (m marked) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Mark", m.name)
	return m.RoundTripper.RoundTrip(r)
}

// entries returns configured crawlers of these names, all with the product token NewsBot.
func entries(names ...string) (all []*crawler) {
	for _, name := range names {
		all = append(all, &crawler{Name: name, Tokens: []string{"NewsBot"}, KeyID: name, Wrap: func(t http.RoundTripper) http.RoundTripper { return marked{t, name} }})
	}
	return all
}

// byMark gives the first of the entries an answer, and denies all to others.
func byMark(first string) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		if r.Header.Get("Mark") == "first" {
			return raw(first)(r)
		}
		return raw(denyAll)(r)
	}
}

// TestEntries: what an origin answers to one of two crawlers with the same product token, which sign with keys of their
// own, decides for this one only, in memory, after a restart and after a reload.
func TestEntries(t *testing.T) {
	const none = "allow unavailable unavailable"
	for name, test := range map[string]struct{ first, want, later string }{
		"401": {"HTTP/1.1 401 Unauthorized\n\n", none, none},
		"403": {forbidden, none, none},
		"429": {tooMany, "deny unreachable unreachable", "deny unreachable unreachable"},
		"503": {unavailable, "deny unreachable unreachable", "deny unreachable unreachable"},
		"200": {allowAll, allowed, allowed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				web := newOrigins()
				web.Serve(example, slow(time.Second, byMark(test.first)))
				known := entries("first", "second")
				config := Config{Settings: defaults(), Transport: web, Store: newDurable()}
				e := engineWith(t, config)
				check := func(when string, fetches int, pairs ...any) {
					t.Helper()
					for i := 0; i < len(pairs); i += 2 {
						r := asks(t, "https://example.com/page", "NewsBot/1.0")
						r.Crawler = pairs[i].(*crawler)
						if got := verdict(e.Decide(t.Context(), r)); got != pairs[i+1] {
							t.Errorf("%s: %d: got %q, want %q", when, i/2, got, pairs[i+1])
						}
					}
					if got := web.Fetched(); len(got) != fetches {
						t.Errorf("%s: %d fetches, want %d", when, len(got), fetches)
					}
				}
				check("at first", 2, known[0], test.want, known[1], denied)
				check("in memory", 0, known[0], test.later, known[1], denied)
				e.Close()
				e = engineWith(t, config)
				check("restarted", 0, known[0], test.later, known[1], denied)
				// The first does not sign any more, and so has to ask.
				known[0].Wrap, known[0].KeyID = nil, ""
				e = e.reconfigured(config)
				check("reloaded", 1, known[0], denied, known[1], denied)
			})
		})
	}
}

// TestForbiddenLists has the crawlers that an origin refuses a robots.txt of which there is a copy.
func TestForbiddenLists(t *testing.T) {
	for _, setting := range []string{"allow", "disallow"} {
		synctest.Test(t, func(t *testing.T) {
			web := newOrigins()
			web.Serve(example, byMark(denyAll))
			web.Serve("https://b.example/robots.txt", raw(forbidden)) // no copy is known
			known, robots := entries("first", "second"), defaults()
			robots.Forbidden = setting
			e := engineFor(t, robots, web, newDurable(), io.Discard)
			e = e.reconfigured(Config{Settings: robots, Transport: web})
			ask := func(url string) {
				for _, k := range known {
					r := asks(t, url, "Bot/1.0")
					r.Crawler = k
					if _, err := e.Decide(t.Context(), r); err != nil {
						t.Fatal(err)
					}
				}
			}
			lists := func(when, want string) {
				t.Helper()
				var got strings.Builder
				for _, f := range e.Forbidden() {
					fmt.Fprintf(&got, "%s %s %d allowed=%v since %s; ", f.Origin, f.Asker, f.Status, f.Allow, time.Since(f.Since))
				}
				if got.String() != want {
					t.Errorf("%s, %s: got %q, want %q", setting, when, got.String(), want)
				}
			}
			ask("https://example.com/page")
			ask("https://b.example/page")
			lists("at first", "")
			time.Sleep(25 * time.Hour) // fake clock
			web.Serve(example, byMark(forbidden))
			ask("https://example.com/page")
			for i := range 2 * maxOutages { // neither these nor those without a copy push it out of the list
				url := fmt.Sprintf("https://%d.example/", i)
				web.Serve(url+"robots.txt", raw([]string{forbidden, unavailable}[i%2]))
				ask(url)
			}
			time.Sleep(time.Second) // fake clock
			lists("refused", fmt.Sprintf("https://example.com NewsBot; keyid=first 403 allowed=%v since 1s; ", setting == "allow"))
			time.Sleep(25 * time.Hour) // fake clock
			web.Serve(example, byMark(denyAll))
			ask("https://example.com/page")
			lists("admitted", "")
		})
	}
}
