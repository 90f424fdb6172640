package snapshot

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// marked adds a header to the fetches of a crawler, by which a site can tell it from another one with the same product
// token, as by its signature.
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
		all = append(all, &crawler{Name: name, Tokens: []string{"NewsBot"}, Wrap: func(t http.RoundTripper) http.RoundTripper { return marked{t, name} }})
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

// TestEntries: what an origin answers to one of two crawlers with the same product token decides for this one only, in
// memory, after a restart and after a reload; and so for a client that matches none and obeys the token.
func TestEntries(t *testing.T) {
	const none = "allow unavailable unavailable"
	for name, test := range map[string]struct{ first, want, later string }{
		"401":  {"HTTP/1.1 401 Unauthorized\n\n", none, none},
		"403":  {forbidden, none, none},
		"429":  {tooMany, "deny unreachable unreachable", denied}, // by the copy of the second
		"503":  {unavailable, "deny unreachable unreachable", denied},
		"Vary": {variedAllow, allowed, allowed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				web := newOrigins()
				web.Serve(example, slow(time.Second, byMark(test.first)))
				known := entries("first", "second")
				config := Config{Settings: defaults(), Transport: web, Store: newDurable()}
				e := engineWith(t, config, known...)
				check := func(when string, fetches int, pairs ...any) {
					t.Helper()
					for i := 0; i < len(pairs); i += 2 {
						r := asks(t, "https://example.com/page", "NewsBot/1.0")
						if k := pairs[i].(*crawler); k != nil {
							r.Crawler = k
						}
						if got := verdict(e.Decide(t.Context(), r)); got != pairs[i+1] {
							t.Errorf("%s: %d: got %q, want %q", when, i/2, got, pairs[i+1])
						}
					}
					if got := web.Fetched(); len(got) != fetches {
						t.Errorf("%s: %d fetches, want %d", when, len(got), fetches)
					}
				}
				var unknown *crawler
				check("at first", 3, known[0], test.want, known[1], denied, unknown, denied)
				check("in memory", 0, known[0], test.later, known[1], denied, unknown, denied)
				e.Close()
				e = engineWith(t, config, known...)
				check("restarted", 0, known[0], test.later, known[1], denied, unknown, denied)
				// The same names, of which the first has another token: it has to ask.
				known = entries("first", "second")
				known[0].Tokens = []string{"ShopBot"}
				known[0].Wrap = nil
				e = e.reconfigured(config, known...)
				check("reloaded", 0, known[0], denied, known[1], denied)
				// The first is no crawler of the configuration any more, but one of another name is.
				known = entries("third", "second")
				e = e.reconfigured(config, known...)
				check("renamed", 0, known[0], denied, known[1], denied)
			})
		})
	}
}

// TestEntrySlots: the clients of a crawler without a configured token take no slot of another crawler, and the
// answers of crawlers that are not configured any more are dropped.
func TestEntrySlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := newOrigins()
		web.Serve(example, raw(forbidden))
		known := []*crawler{{Name: "open"}, {Name: "other"}}
		config := Config{Settings: defaults(), Transport: web, Store: newDurable()}
		e := engineWith(t, config, known...)
		slots := func(k *crawler, n int) (allowed int) {
			for i := range n {
				r := asks(t, "https://example.com/page", bot(i))
				r.Crawler = k
				d, err := e.Decide(t.Context(), r)
				if err != nil {
					t.Fatal(err)
				}
				if d.Allow {
					allowed++
				}
			}
			return allowed
		}
		for _, k := range known {
			if n := slots(k, 40); n != maxBound {
				t.Errorf("%s: %d clients have a slot, want %d", k.Name, n, maxBound)
			}
		}
		bound := func() map[string]int {
			set, _ := e.Known(t.Context(), Scope{Origin: "https://example.com", Crawlers: true})
			by := map[string]int{}
			for slot := range set.Bound {
				name, _, _ := SplitSlot(slot)
				by[name]++
			}
			return by
		}
		if got, want := bound(), map[string]int{"open": 17, "other": 17}; !maps.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		known[0] = &crawler{Name: "new"}
		e = e.reconfigured(config, known...)
		slots(known[0], 1)
		if got, want := bound(), map[string]int{"new": 1, "other": 17}; !maps.Equal(got, want) {
			t.Errorf("after a reload: got %v, want %v", got, want)
		}
	})
}

// TestEarlierSlots: answers that an earlier version has stored for a product token decide for no client: it fetched
// with the User-Agent of clients, for all crawlers with the token.
func TestEarlierSlots(t *testing.T) {
	for _, crawlers := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			web, disk := newOrigins(), newDurable()
			web.Serve(example, raw(denyAll))
			scope := Scope{Origin: "https://example.com", Crawlers: crawlers}
			refused := &Snapshot{URL: example, Status: 403, Fetched: time.Now(), Since: time.Now(), Lifetime: -1}
			varied := &Snapshot{URL: example, Status: 200, Varies: true, Fetched: time.Now(), SHA256: Digest("User-agent: *\nAllow: /\n"), Lifetime: -1}
			copied := scope
			copied.Slot = "shopbot"
			if err := disk.Save(t.Context(), map[string]Set{
				scope.Key():  {Bound: map[string]*Snapshot{"newsbot": refused, NoSlot: refused}, Copies: map[string]*Snapshot{"shopbot": varied}},
				copied.Key(): {Good: varied, Last: varied, Body: []byte("User-agent: *\nAllow: /\n")},
			}); err != nil {
				t.Fatal(err)
			}
			known := []*crawler{{Name: "news", Tokens: []string{"NewsBot"}}, {Name: "shop", Tokens: []string{"ShopBot"}}}
			e := engineWith(t, Config{Settings: defaults(), Transport: web, Store: disk}, known...)
			for i, agent := range []string{"NewsBot/1.0", "ShopBot/1.0"} {
				r := asks(t, "https://example.com/page", agent)
				if crawlers {
					r.Crawler = known[i]
				}
				if got := verdict(e.Decide(t.Context(), r)); got != denied {
					t.Errorf("%s: got %q, want %q", agent, got, denied)
				}
			}
			e.Close()
			set, _ := disk.Load(t.Context(), scope.Key())
			if len(set.Bound)+len(set.Copies) != 0 || !slices.Equal(slices.Collect(maps.Keys(disk.rows)), []string{scope.Key()}) {
				t.Errorf("the answers are still stored: %+v", disk.rows)
			}
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
			e = e.reconfigured(Config{Settings: robots, Transport: web}, known...)
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
					fmt.Fprintf(&got, "%s %s %s %d allowed=%v since %s; ", f.Origin, f.Crawler, f.Token, f.Status, f.Allow, time.Since(f.Since))
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
			lists("refused", fmt.Sprintf("https://example.com first newsbot 403 allowed=%v since 1s; ", setting == "allow"))
			time.Sleep(25 * time.Hour) // fake clock
			web.Serve(example, byMark(denyAll))
			ask("https://example.com/page")
			lists("admitted", "")
		})
	}
}
