package snapshot

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/policy/internal/origintest"
)

const (
	allowAll = "HTTP/1.1 200 OK\n\nUser-agent: *\nAllow: /\n"
	denyAll  = "HTTP/1.1 200 OK\n\nUser-agent: *\nDisallow: /\n"
)

// A site is one origin, an engine, and two configured crawlers beside all other clients.
type site struct {
	*testing.T
	web    *origintest.Web
	disk   *durable
	engine *engine
	known  map[string]*crawler
}

// newSite returns a site that answers by the first product of the User-Agent.
func newSite(t *testing.T, answers map[string]string) *site {
	s := &site{T: t, web: newOrigins(), disk: newDurable(), known: map[string]*crawler{
		"NewsBot": {Name: "news", Tokens: []string{"NewsBot"}},
		"ShopBot": {Name: "shop", Tokens: []string{"ShopBot"}},
	}}
	s.answers(answers)
	s.start()
	return s
}

func (s *site) answers(by map[string]string) {
	s.web.Serve(example, slow(time.Second, byCrawler(raw("HTTP/1.1 500 Not in the test\n\n"), by)))
}

func (s *site) start() {
	s.engine = engineWith(s.T, s.config(), slices.Collect(maps.Values(s.known))...)
}

func (s *site) config() Config {
	return Config{Settings: defaults(), Transport: s.web, Store: s.disk}
}

func (s *site) restart() {
	s.engine.Close()
	s.start()
}

// request returns a request of a configured crawler, or of another client. That client has a product token too, so
// that the site can tell by the User-Agent of a fetch which client has caused it.
func (s *site) request(name string) request {
	r := asks(s.T, "https://example.com/page", name+"/1.0")
	r.Crawler.Tokens = []string{name}
	if k := s.known[name]; k != nil {
		r.Crawler = k
	}
	return r
}

// check decides in the order of the pairs, each a client's name and the verdict wanted for it.
func (s *site) check(when string, pairs ...string) {
	s.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if got, want := verdict(s.engine.Decide(s.Context(), s.request(pairs[i]))), pairs[i+1]; got != want {
			s.Errorf("%s: %s: got %q, want %q", when, pairs[i], got, want)
		}
	}
}

func (s *site) fetches(when string, want int) {
	s.Helper()
	if got := s.web.Fetched(); len(got) != want {
		s.Errorf("%s: %d fetches, want %d", when, len(got), want)
	}
}

const (
	allowed = "allow rule fresh"
	denied  = "deny rule fresh"
)

// TestScopes: an origin that answers by User-Agent, without Vary. An answer that was fetched for
// another client never decides for a configured crawler, nor the other way round.
func TestScopes(t *testing.T) {
	for name, test := range map[string]struct{ evil, news, evilWant, newsWant string }{
		"it opens":              {allowAll, denyAll, allowed, denied},
		"it closes":             {denyAll, allowAll, denied, allowed},
		"it has no file":        {"HTTP/1.1 404 Not Found\n\n", denyAll, "allow unavailable unavailable", denied},
		"it is refused":         {forbidden, denyAll, "allow unavailable unavailable", denied},
		"its connection breaks": {"", allowAll, "deny unreachable unreachable", allowed},
		"its fetch fails":       {unavailable, allowAll, "deny unreachable unreachable", allowed},
		"it is sent in circles": {"HTTP/1.1 302 Found\nLocation: /robots.txt\n\n", denyAll, "allow unavailable unavailable", denied},
	} {
		for _, first := range []string{"Evil", "NewsBot"} {
			t.Run(name+", first "+first, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newSite(t, map[string]string{"Evil": test.evil, "NewsBot": test.news})
					pairs := []string{"Evil", test.evilWant, "NewsBot", test.newsWant}
					if first == "NewsBot" {
						pairs = append(pairs[2:], pairs[:2]...)
					}
					s.check("at first", pairs...)
					s.web.Fetched()
					s.check("in memory", pairs...)
					s.fetches("in memory", 0)
					s.restart()
					s.check("after a restart", pairs...)
					if test.evil != "" && test.evil != unavailable { // these are tried again soon
						s.fetches("after a restart", 0)
					}
				})
			})
		}
	}
}

// TestScopesStale: while an origin is down, each scope uses its own copy, and without one
// everything is denied.
func TestScopesStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, map[string]string{"Evil": allowAll})
		s.check("up", "Evil", allowed)
		time.Sleep(25 * time.Hour) // fake clock
		s.answers(map[string]string{"Evil": "", "NewsBot": ""})
		s.check("no copy", "NewsBot", "deny unreachable unreachable", "Evil", "allow rule stale", "NewsBot", "deny unreachable unreachable")
		time.Sleep(time.Hour) // fake clock
		s.answers(map[string]string{"Evil": "", "NewsBot": denyAll})
		s.check("up for one", "Evil", "allow rule stale", "NewsBot", denied)
		time.Sleep(25 * time.Hour) // fake clock
		s.answers(map[string]string{"Evil": "", "NewsBot": "", "ShopBot": ""})
		for _, when := range []string{"down", "after a restart"} {
			s.check(when, "Evil", "allow rule stale", "NewsBot", "deny rule stale", "ShopBot", "deny rule stale")
			s.restart()
		}
	})
}

// TestScopesShare: configured crawlers share one fetch, and so do all other clients, however
// many ask at once. Without configured crawlers one fetch is for all.
func TestScopesShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, map[string]string{"Evil": allowAll, "NewsBot": denyAll, "ShopBot": denyAll, "Bot": allowAll})
		s.check("one after the other", "NewsBot", denied, "ShopBot", denied)
		s.fetches("configured crawlers", 1)
		s.check("one after the other", "Evil", allowed, "Bot", allowed)
		s.fetches("other clients", 1)

		time.Sleep(48 * time.Hour) // fake clock
		var wg sync.WaitGroup
		for i := range 1000 {
			wg.Go(func() {
				s.check("at once", []string{"NewsBot", denied, "Evil", allowed, "ShopBot", denied, "Bot", allowed}[i%4*2:][:2]...)
			})
		}
		wg.Wait()
		s.fetches("at once", 2)

		s.engine.Close()
		s.disk = newDurable()
		s.known = nil
		s.start()
		s.check("none is configured", "Evil", allowed, "NewsBot", allowed, "Bot", allowed)
		s.fetches("none is configured", 1)
	})
}

// TestScopesReload: an answer that was fetched while no crawler was configured
// does not decide for crawlers that have been configured since.
func TestScopesReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, map[string]string{"Evil": allowAll, "NewsBot": denyAll, "ShopBot": denyAll})
		known := s.known
		s.known = nil
		s.engine.Close()
		s.start()
		s.check("none is configured", "Evil", allowed, "NewsBot", allowed)

		old := s.engine
		s.engine, s.known = old.reconfigured(s.config(), slices.Collect(maps.Values(known))...), known
		s.check("reloaded", "NewsBot", denied, "Evil", allowed, "ShopBot", denied)
		s.fetches("both", 2)
		s.engine, s.known = old.reconfigured(s.config()), nil
		s.check("reloaded again", "NewsBot", allowed)
		s.fetches("as before", 0)
	})
}

// TestScopesRefresh: whichever client a refresh names, all decide by a new copy from then on.
func TestScopesRefresh(t *testing.T) {
	for _, by := range []string{"Evil", "NewsBot"} {
		synctest.Test(t, func(t *testing.T) {
			s := newSite(t, map[string]string{"Evil": allowAll, "NewsBot": denyAll, "ShopBot": denyAll})
			s.check("before", "NewsBot", denied, "Evil", allowed)
			s.answers(map[string]string{"Evil": denyAll, "NewsBot": allowAll, "ShopBot": allowAll})
			time.Sleep(time.Minute) // fake clock
			s.check("before", "NewsBot", denied, "Evil", allowed)
			if _, err := s.engine.Refresh(t.Context(), s.request(by)); err != nil {
				t.Fatal(err)
			}
			s.restart() // it is not forgotten either
			s.check("refreshed by "+by, "NewsBot", allowed, "Evil", denied, "ShopBot", allowed)
			s.fetches("refreshed by "+by, 4)
			// If the new copy can't be fetched the old one is used.
			s.answers(map[string]string{"Evil": denyAll, "NewsBot": "", "ShopBot": ""})
			time.Sleep(time.Minute) // fake clock
			if _, err := s.engine.Refresh(t.Context(), s.request("Evil")); err != nil {
				t.Fatal(err)
			}
			s.check("and then it is down", "NewsBot", allowed, "Evil", denied)
		})
	}
}

// TestKeys: keys name their scopes, and no two scopes have the same key.
func TestKeys(t *testing.T) {
	seen := map[string]bool{}
	for _, origin := range []string{"http://a.example", "https://a.example", "https://a.example:8443", "https://[2001:db8::1]"} {
		for i := range 4 {
			for _, slot := range []string{"", "/*", "/bot", "news/b-o_t", "a name that nobody has/bot", "https://a.example/bot", "bot"} {
				s := Scope{origin, i&1 != 0, i&2 != 0, slot}
				if got := ParseKey(s.Key()); got != s || seen[s.Key()] {
					t.Errorf("%+v: %q is the key of %+v", s, s.Key(), got)
				}
				seen[s.Key()] = true
			}
		}
	}
	if got := (Scope{Origin: "http://a.example"}).Key(); got != "http://a.example" {
		t.Errorf("got %q, want the key of earlier versions", got)
	}
	long := Scope{Origin: "http://a.example", Slot: fmt.Sprintf("%04096d", 1)}
	if n := len(long.Key()); n > 300 {
		t.Errorf("a key of %d bytes", n)
	}
}
