package snapshot

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/policy/internal/origintest"
)

const (
	allowAll = "HTTP/1.1 200 OK\n\nUser-agent: *\nAllow: /\n"
	denyAll  = "HTTP/1.1 200 OK\n\nUser-agent: *\nDisallow: /\n"

	allowed     = "allow rule fresh"
	denied      = "deny rule fresh"
	none        = "allow unavailable unavailable"
	unreachable = "deny unreachable unreachable"
)

// A site is one origin and an engine.
type site struct {
	*testing.T
	web    *origintest.Web
	disk   *durable
	engine *engine

	settings Settings
}

// newSite returns a site that answers by the first product of the User-Agent.
func newSite(t *testing.T, answers map[string]string) *site {
	s := &site{T: t, web: newOrigins(), disk: newDurable(), settings: defaults()}
	s.answers(answers)
	s.start()
	return s
}

func (s *site) answers(by map[string]string) {
	s.web.Serve(example, slow(time.Second, byCrawler(raw("HTTP/1.1 500 Not in the test\n\n"), by)))
}

func (s *site) start() {
	s.engine = engineWith(s.T, Config{Settings: s.settings, Transport: s.web, Store: s.disk})
}

func (s *site) restart() {
	s.engine.Close()
	s.start()
}

// request returns a request of a crawler with this product token. The fetch carries it, but for a name in lower case,
// which stands for a client without a configured token.
func (s *site) request(name string) request {
	r := asks(s.T, "https://example.com/page", name+"/1.0")
	if name != strings.ToLower(name) {
		r.Crawler.Tokens = []string{name}
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

// varying returns a response with a Vary of User-Agent.
func varying(response string) string {
	head, body, _ := strings.Cut(response, "\n\n")
	return head + "\nVary: Accept-Encoding, user-agent\n\n" + body
}

// TestAskers: an origin that answers by User-Agent, with and without Vary. An answer to one never decides for another,
// in any order of requests, in memory, after a restart and while the origin is down.
func TestAskers(t *testing.T) {
	for name, test := range map[string]struct{ evil, honest, evilWant, honestWant string }{
		"it opens":             {allowAll, denyAll, allowed, denied},
		"it closes":            {denyAll, allowAll, denied, allowed},
		"it has no file":       {"HTTP/1.1 404 Not Found\n\n", denyAll, none, denied},
		"it has none any more": {"HTTP/1.1 410 Gone\n\n", denyAll, none, denied},
		"it is refused":        {forbidden, denyAll, none, denied},
		"it fails":             {unavailable, allowAll, unreachable, allowed},
		"its connection ends":  {"", allowAll, unreachable, allowed},
		"it is limited":        {tooMany, allowAll, unreachable, allowed},
		"it goes in circles":   {"HTTP/1.1 302 Found\nLocation: /robots.txt\n\n", denyAll, none, denied},
		"it is sent away":      {"HTTP/1.1 302 Found\nLocation: https://b.example/robots.txt\n\n", denyAll, allowed, denied},
	} {
		for _, first := range []string{"Evil", "Honest"} {
			for _, vary := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, first %s, Vary %v", name, first, vary), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						evil, honest := test.evil, test.honest
						if vary && evil != "" {
							evil, honest = varying(evil), varying(honest)
						}
						s := newSite(t, map[string]string{"Evil": evil, "Honest": honest})
						s.web.Serve("https://b.example/robots.txt", raw(allowAll))
						pairs := []string{"Evil", test.evilWant, "Honest", test.honestWant}
						if first == "Honest" {
							pairs = append(pairs[2:], pairs[:2]...)
						}
						s.check("at first", pairs...)
						s.web.Fetched()
						s.check("in memory", pairs...)
						s.fetches("in memory", 0)
						s.restart()
						s.check("after a restart", "Honest", test.honestWant)
						s.fetches("after a restart", 0)
						s.check("after a restart", pairs...)
						time.Sleep(25 * time.Hour) // fake clock
						s.answers(map[string]string{"Evil": "", "Honest": "", "New": ""})
						s.check("down", "Honest", strings.Replace(test.honestWant, "fresh", "stale", 1), "New", unreachable)
					})
				})
			}
		}
	}
}

// TestNewestAnswer: of all answers to one asker the newest decides, for all crawlers that ask alike, and what a refresh
// and a decision say of it is the same. Other askers go on with their own. It holds for many orders of three answers, which have all of two.
func TestNewestAnswer(t *testing.T) {
	status := func(code int) string { return fmt.Sprintf("HTTP/1.1 %d x\n\n", code) }
	answers := []struct{ text, alone, afterRules string }{
		{allowAll, allowed, allowed},
		{varying(denyAll), denied, denied},
		{status(401), none, none},
		{varying(status(403)), none, none},
		{status(451), none, none},
		{status(404), none, none},
		{status(429), unreachable, ""}, // after rules: these
		{status(503), unreachable, ""},
		{"", unreachable, ""},
	}
	play := func(t *testing.T, order []int, refresh bool) {
		s := newSite(t, map[string]string{"Other": denyAll})
		s.settings.MaxAge = time.Minute // else the fake clock has far to go
		s.settings.MinAge = 0
		s.restart()
		s.check("another asker", "Other", denied)
		rules := "" // the verdict by the last good copy
		for n, i := range order {
			a := answers[i]
			s.answers(map[string]string{"robotsgate": a.text, "Other": denyAll})
			want, by := a.alone, ""
			switch {
			case strings.HasPrefix(a.text, "HTTP/1.1 200"):
				rules = a.alone
			case a.afterRules == "" && rules != "":
				want, by = rules, "a copy"
				if !refresh {
					want = strings.Replace(rules, "fresh", "stale", 1)
				}
			}
			asker := []string{"one", "two", "three"}[n]
			if refresh {
				time.Sleep(10 * time.Second) // fake clock
				res, err := s.engine.Refresh(t.Context(), s.request(asker))
				if err != nil || (by == "") != (res.Snapshot == res.Answer) {
					t.Fatalf("refresh: got %+v, %v", res, err)
				}
			} else {
				time.Sleep(30 * time.Minute) // fake clock: beyond the longest backoff
			}
			for range 2 {
				var seen *Snapshot
				for _, name := range []string{asker, "one", "two", "three"} {
					d, err := s.engine.Decide(t.Context(), s.request(name))
					if got := verdict(d, err); got != want {
						t.Errorf("%v, answer %d, refresh %v: %s: got %q, want %q", order, n, refresh, name, got, want)
					}
					if seen == nil {
						seen = d.Robots.Snapshot
					}
					if seen != d.Robots.Snapshot || by == "" && d.Robots.Snapshot != d.Robots.Answer {
						t.Errorf("%v, answer %d, refresh %v: %s: decided by %+v, the answer is %+v", order, n, refresh, name, d.Robots.Snapshot, d.Robots.Answer)
					}
				}
				s.restart()
			}
			s.check("another asker", "Other", denied)
		}
	}
	for i := range answers {
		for j := range answers {
			for _, refresh := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) { play(t, []int{i, j, (i + 2*j) % len(answers)}, refresh) })
			}
		}
	}
}

// TestKeys: keys name their scopes, and no two scopes have the same key.
func TestKeys(t *testing.T) {
	seen := map[string]bool{}
	for _, origin := range []string{"http://a.example", "https://a.example", "https://a.example:8443", "https://[2001:db8::1]"} {
		for _, asker := range []string{"", "Bot", "bot", "Bot/1.0 (+https://a.example/bot)", "tdmrep https://a.example", askerOf("Bot; keyid=x", ""), askerOf("Bot", "x")} {
			for _, tdmrep := range []bool{false, true} {
				s := Scope{origin, tdmrep, asker}
				if got := ParseKey(s.Key()); got != s || seen[s.Key()] {
					t.Errorf("%+v: %q is the key of %+v", s, s.Key(), got)
				}
				seen[s.Key()] = true
			}
		}
	}
	if n := len(askerOf(strings.Repeat("x", 1024), "id")); n > 256 {
		t.Errorf("an asker of %d bytes", n)
	}
}

// FuzzMerge gives some answers to two gates, some to one and some to the other. Merged in either order, the sets must
// say what one gate would know that had got them all.
func FuzzMerge(f *testing.F) {
	f.Add([]byte{0x00, 0x93, 0x00}, uint8(1))
	f.Add([]byte{0x03, 0x80, 0x14, 0x9a, 0x25, 0xa2}, uint8(3))
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, input []byte, meet uint8) {
		var one, left, right Set
		for i, b := range input[:min(len(input), 40)] {
			s := &Snapshot{Status: []int{200, 404, 0, 403, 503}[b&0x7f%5], Fetched: began.Add(time.Duration(i) * time.Minute)}
			one = one.add(s)
			if b&0x80 == 0 {
				left = left.add(s)
			} else {
				right = right.add(s)
			}
			if i == int(meet) { // they meet on the way, too
				left, _ = Merge(left, right)
			}
		}
		for _, pair := range [][2]Set{{left, right}, {right, left}} {
			got, learned := Merge(pair[0], pair[1])
			if got.Good != one.Good || got.Last != one.Last || learned != (got.Good != pair[0].Good || got.Last != pair[0].Last) {
				t.Errorf("%+v: got %+v, %v, want %+v", pair, got, learned, one)
			}
			if _, learned := Merge(got, pair[1]); learned {
				t.Errorf("%+v: merged again: something was learned", pair)
			}
		}
	})
}
