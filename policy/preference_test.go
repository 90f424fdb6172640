package policy

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/policy/usage"
)

const tdmrepExample = "https://example.com/.well-known/tdmrep.json"

// TestUsageRefused checks when a reserved purpose refuses a request: after Disallow, overrides and the mode.
func TestUsageRefused(t *testing.T) {
	const reserved = "User-agent: *\nDisallow: /private/\nContent-Usage: train-ai=n\n"
	const reading = "User-agent: *\nDisallow: /private/\nContent-Usage: /art/ train-ai=n\nContent-Usage: //art/ train-ai=y\n"
	all := hosts(t, "*")
	for _, c := range []struct {
		name     string
		robots   string
		url      string
		method   string
		mode     Mode
		readings Readings
		override *Override
		whole    bool
		want     string // verdict
		readAs   string
		denied   bool
	}{
		{name: "reserved", robots: reserved, url: "/a", want: "deny usage fresh", denied: true},
		{name: "report mode", robots: reserved, url: "/a", mode: Report, want: "deny usage fresh"},
		{name: "disallowed in report mode", robots: reserved, url: "/private/", mode: Report, want: "deny rule fresh"},
		{name: "an override that allows", robots: reserved, url: "/a", override: &Override{Hosts: all, Action: Allow}, want: "allow override"},
		{name: "an override that leaves it to robots.txt", robots: reserved, url: "/a", override: &Override{Hosts: all, Action: LeaveToRobots}, want: "deny usage fresh", denied: true},
		{name: "a tunnel", robots: reserved, url: "/", whole: true, want: "deny usage fresh", denied: true},
		{name: "a tunnel to a part", robots: "User-agent: *\nDisallow: /\nAllow: /x\nContent-Usage: train-ai=n\n", url: "/", whole: true, want: "deny usage fresh", denied: true},
		{name: "a tunnel where another path is reserved", robots: reading, url: "/", whole: true, want: "allow no-match fresh"},
		{name: "robots.txt", robots: reserved, url: "/robots.txt", want: "allow implicit fresh"},
		{name: "HEAD of robots.txt", robots: reserved, url: "/robots.txt", method: http.MethodHead, want: "allow implicit fresh"},
		{name: "POST to robots.txt, which is sent to the origin", robots: reserved, url: "/robots.txt", method: http.MethodPost, want: "deny usage fresh", denied: true},
		{name: "another reading, although the literal one is not reserved", robots: reading, url: "//art/", want: "deny usage fresh", readAs: "/art/", denied: true},
		{name: "literal readings only", robots: reading, url: "//art/", readings: Literal, want: "allow no-match fresh"},
		{name: "a denied reading comes first", robots: reading, url: "//private/", want: "deny rule fresh", readAs: "/private/", denied: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			web := newOrigins()
			web.Serve(example, rules(c.robots))
			k := &Crawler{Name: "k", Mode: c.mode, Purposes: []usage.Purpose{usage.TrainAI}}
			config := Config{Crawlers: Crawlers{Known: []*Crawler{k}}, Robots: defaults(), Usage: Usage{Reserved: RefuseReserved}, Transport: web}
			config.Robots.Readings = c.readings
			if c.override != nil {
				config.Overrides = []Override{*c.override}
			}
			e := engineWith(t, config)
			target := targetOf(t, "https://example.com"+c.url)
			decide := e.Decide
			if c.whole {
				decide = e.DecideHost
			}
			d, err := decide(t.Context(), Request{Target: target, Method: c.method, Crawler: k})
			if got := verdict(d, err); got != c.want || d.ReadAs != c.readAs || d.Denied() != c.denied {
				t.Errorf("got %s, read as %q, denied %v; want %s, %q, %v", got, d.ReadAs, d.Denied(), c.want, c.readAs, c.denied)
			}
			if reserves := d.Reserved != (usage.Preference{}); reserves != (d.Reason == ByUsage) {
				t.Errorf("reason %s, reserved by %+v", d.Reason, d.Reserved)
			}
			reserved := d.Explain(c.url).Reserved
			if d.Reason == ByUsage && (reserved == nil || *reserved != d.Reserved.Detail()) || d.Reason != ByUsage && reserved != nil {
				t.Errorf("reason %s, explained as reserved by %+v", d.Reason, reserved)
			}
		})
	}
}

// TestUsageOverridden: an override that allows lifts a reservation, which is reported all the same if the crawler has a
// purpose. What can't be read states nothing, and refuses nothing.
func TestUsageOverridden(t *testing.T) {
	const reserved = "User-agent: *\nDisallow: /private/\nContent-Usage: train-ai=n\n"
	for _, c := range []struct {
		name     string
		robots   func(*http.Request) (*http.Response, error)
		url      string
		purposes []usage.Purpose
		tdmrep   bool
		want     string // what is stated
		fetches  int
	}{
		{name: "reserved", robots: rules(reserved), url: "/a", purposes: usage.Purposes, want: "train-ai:n:content-usage:3", fetches: 1},
		{name: "disallowed too", robots: rules(reserved), url: "/private/", purposes: usage.Purposes, fetches: 1},
		{name: "no purposes", robots: rules(reserved), url: "/a"},
		{name: "unreachable", robots: raw("HTTP/1.1 500 No\n\n"), url: "/a", purposes: usage.Purposes, fetches: 1},
		{name: "slow", robots: slow(time.Hour, rules(reserved)), url: "/a", purposes: usage.Purposes, fetches: 1},
		{name: "tdmrep.json", robots: rules(""), url: "/a", purposes: usage.Purposes, tdmrep: true, want: "tdm:n:tdmrep:well-known", fetches: 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				web := newOrigins()
				web.Serve(example, c.robots)
				web.Serve(tdmrepExample, raw("HTTP/1.1 200 OK\n\n"+`[{"location": "/", "tdm-reservation": 1}]`))
				k := &Crawler{Name: "k", Purposes: c.purposes}
				config := Config{Crawlers: Crawlers{Known: []*Crawler{k}}, Robots: defaults(), Usage: Usage{Reserved: RefuseReserved, TDMRep: c.tdmrep}, Transport: web}
				config.Overrides = []Override{{Hosts: hosts(t, "*"), Action: Allow}}
				e := engineWith(t, config)
				target := targetOf(t, "https://example.com"+c.url)
				begun := time.Now()
				d, err := e.Decide(t.Context(), Request{Target: target, Crawler: k})
				if got := verdict(d, err); got != "allow override" || statedBy(d.Stated.Preferences...) != cmp.Or(c.want, "nothing") {
					t.Errorf("got %s, stated %s", got, statedBy(d.Stated.Preferences...))
				}
				if took := time.Since(begun); took > config.Robots.Timeout {
					t.Errorf("it took %v", took)
				}
				of := d.UsageOf(target.Path, usage.Input{Header: http.Header{"Content-Usage": {"search=n"}}})
				if n := len(d.Stated.Preferences); len(of.Preferences) != n+1 {
					t.Errorf("with the response: got %s", statedBy(of.Preferences...))
				}
				if got := web.Fetched(); len(got) != c.fetches {
					t.Errorf("fetched %v", got)
				}
			})
		})
	}
}

// TestTDMRepAtOnce: however many clients ask at once, tdmrep.json is fetched once for all clients that match no
// crawler, and once for each configured crawler with a name of its own. All of them get the answer.
func TestTDMRepAtOnce(t *testing.T) {
	for _, header := range []string{"", "Vary: User-Agent\n"} {
		synctest.Test(t, func(t *testing.T) {
			web := newOrigins()
			web.Serve(tdmrepExample, slow(time.Second, raw("HTTP/1.1 200 OK\n"+header+"\n"+`[{"location": "/", "tdm-reservation": 1}]`)))
			known := []*Crawler{{Name: "a", Tokens: []string{"abot"}}, {Name: "b", Tokens: []string{"bbot"}}}
			e := engineWith(t, Config{Crawlers: Crawlers{Known: known}, Robots: defaults(), Usage: Usage{TDMRep: true}, Transport: web})
			target := targetOf(t, "https://example.com/page")
			begun := time.Now()
			var all sync.WaitGroup
			for i := range 300 {
				all.Go(func() {
					r := Request{Target: target, UserAgent: fmt.Sprintf("Bot-%c%c/1.0", 'a'+i/26, 'a'+i%26)}
					if i%3 > 0 {
						r.Crawler = known[i%2]
					}
					d, err := e.Decide(t.Context(), r)
					if got := statedBy(d.Stated.Preferences...); err != nil || got != "tdm:n:tdmrep:well-known" {
						t.Errorf("%d: got %s, %v", i, got, err)
					}
				})
			}
			all.Wait()
			if took := time.Since(begun); took != time.Second {
				t.Errorf("%q: it took %v, want 1s", header, took)
			}
			const fetches = 3
			if n := len(slices.DeleteFunc(web.Fetched(), func(url string) bool { return url != tdmrepExample })); n != fetches {
				t.Errorf("%q: %d fetches, want %d", header, n, fetches)
			}
		})
	}
}

// TestTDMRepOverridden: tdmrep.json is fetched as any other URL is, so overrides for it count.
func TestTDMRepOverridden(t *testing.T) {
	paths := []string{"/.well-known/"}
	for _, c := range []struct {
		robots   string
		action   Action
		fetched  bool
		ofOthers bool // the override is for other crawlers
	}{
		{robots: "", action: Deny},
		{robots: "", action: Deny, ofOthers: true, fetched: true},
		{robots: "User-agent: *\nDisallow: /.well-known/\n", action: Allow, fetched: true},
		{robots: "User-agent: *\nDisallow: /.well-known/\n", action: LeaveToRobots},
	} {
		web := newOrigins()
		web.Serve(example, rules(c.robots))
		o := Override{Hosts: hosts(t, "*"), Paths: paths, Action: c.action}
		if c.ofOthers {
			o.Crawlers = []string{"other"}
		}
		e := engineWith(t, Config{Robots: defaults(), Overrides: []Override{o}, Usage: Usage{TDMRep: true}, Transport: web})
		d, err := e.Decide(t.Context(), asks(t, "https://example.com/page", "Bot/1.0"))
		if err != nil || !d.Allow || (d.TDMRep != nil) != c.fetched || slices.Contains(web.Fetched(), tdmrepExample) != c.fetched {
			t.Errorf("%+v: got %+v, %v", c, d, err)
		}
	}
}
