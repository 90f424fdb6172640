package policy

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/internal/gatetest"
	"robotsgate/internal/store"
	"robotsgate/policy/canonical"
	"robotsgate/policy/snapshot"
	"robotsgate/policy/usage"
)

const tdmrepExample = "https://example.com/.well-known/tdmrep.json"

// TestUsageInput checks that a decision says what is known of the use of its URL.
func TestUsageInput(t *testing.T) {
	const robots = "User-agent: *\nDisallow: /private/\n"
	settings := defaults()
	for _, c := range []struct {
		path   string
		status int
		change func(*Decision) // nil: none
		denied bool
		robots bool // there are rules
		tdmrep bool
	}{
		{path: "/page?q=1", status: 200, robots: true},
		{path: "/private/", status: 200, robots: true, denied: true},
		{path: "/page", status: 404},
		{path: "/page", status: 500, denied: true},
		{path: "/page", status: 200, robots: true, change: func(d *Decision) { d.Allow, d.Reason = false, ByUsage }},
		{path: "/page", status: 200, robots: true, tdmrep: true, change: func(d *Decision) { d.TDMRep = &snapshot.Resolution{TDMRep: &usage.TDMFile{}} }},
		{path: "/page", status: 200, change: func(d *Decision) { *d = Decision{Allow: true, Reason: ByOverride} }},
	} {
		target := targetOf(t, "https://example.com"+c.path)
		d := settings.Judge(c.status, []byte(robots), target, []string{"ExampleBot"})
		if c.change != nil {
			c.change(&d)
		}
		in := d.UsageInput(target.Path)
		if in.Path != c.path || in.Denied != c.denied || (in.Robots != nil) != c.robots || (in.TDMRep != nil) != c.tdmrep || in.Group != d.Group {
			t.Errorf("%s, %d %s: got %+v, want %+v", c.path, c.status, d.Reason, in, c)
		}
		if c.robots && !in.Group.OK() {
			t.Errorf("%s: got no group", c.path)
		}
	}
}

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

// TestTDMRepIsNoOutage: a tdmrep.json that can't be fetched is no outage of a robots.txt.
func TestTDMRepIsNoOutage(t *testing.T) {
	web := newOrigins()
	web.Serve(tdmrepExample, raw("HTTP/1.1 503 Service Unavailable\n\n"))
	var fetches []snapshot.Fetch
	var mu sync.Mutex
	e := engineWith(t, Config{Robots: defaults(), Usage: Usage{TDMRep: true}, Transport: web, OnFetch: func(f snapshot.Fetch) {
		mu.Lock()
		defer mu.Unlock()
		f.Took = 0
		fetches = append(fetches, f)
	}})
	if d := ask(t, e, "https://example.com/page", "Bot/1.0"); d.TDMRep.State != snapshot.Unreachable {
		t.Fatalf("got %+v", d)
	}
	if all := e.Snapshots().Outages(); len(all) > 0 {
		t.Errorf("got outages %+v", all)
	}
	want := []snapshot.Fetch{{Origin: "https://example.com", Outcome: "unavailable"}, {Origin: "https://example.com", TDMRep: true, Outcome: "unreachable"}}
	if !slices.Equal(fetches, want) {
		t.Errorf("got fetches %+v, want %+v", fetches, want)
	}
}

// TestUsageCosts: preferences that take many steps are read within bounds, with the path's other readings too,
// and the request is refused if what is reserved can't be found out.
func TestUsageCosts(t *testing.T) {
	// Its parts are in the path, so that all of the path must be searched for each line.
	hostile := "User-agent: *\n" + strings.Repeat("Content-Usage: /*abcd train-ai=n\n", 15_000)
	web := newOrigins()
	web.Serve(example, rules(hostile))
	k := &Crawler{Name: "k", Purposes: []usage.Purpose{usage.TrainAI}}
	config := Config{Crawlers: Crawlers{Known: []*Crawler{k}}, Robots: defaults(), Usage: Usage{Reserved: RefuseReserved}, Transport: web}
	config.Robots.CacheBytes = 64 << 20
	e := engineWith(t, config)
	target := targetOf(t, "https://example.com//"+strings.Repeat("abcxbcdx", 4<<10)+"%2F")
	r := Request{Target: target, Crawler: k}
	if d, err := e.Decide(t.Context(), r); err != nil || d.Allow || d.Reason != ByUsage && d.Reason != TooComplex {
		t.Fatalf("got %v, %v", d.Reason, err)
	}
	begun := gatetest.CPUTime(t)
	for range 5 {
		if _, err := e.Decide(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	if took := (gatetest.CPUTime(t) - begun) / 5; took > time.Second && !gatetest.RaceDetector {
		t.Errorf("a decision takes %v", took)
	}
}

// TestUsageIsFree: a decision with nothing stated allocates no more than without the reading of preferences.
func TestUsageIsFree(t *testing.T) {
	settings := defaults()
	target := targetOf(t, "https://example.com/page")
	d := settings.Judge(200, []byte("User-agent: *\nDisallow: /private/\nSitemap: https://example.com/s.xml\n"), target, nil)
	r := Request{Target: target, Crawler: &Crawler{Purposes: usage.Purposes}}
	if n := testing.AllocsPerRun(100, func() {
		if (Usage{Reserved: RefuseReserved}).judge(&d, r, Strict); !d.Allow {
			t.Errorf("got %+v", d)
		}
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

// TestUsageJudge checks that a robots.txt at hand refuses what an engine would refuse.
func TestUsageJudge(t *testing.T) {
	const robots = "User-agent: *\nDisallow: /private/\nContent-Usage: /art/ train-ai=n\n"
	trainer := &Crawler{Purposes: []usage.Purpose{usage.TrainAI}}
	for _, c := range []struct {
		path    string
		refuse  bool
		crawler *Crawler
		want    Reason
	}{
		{"/art/x", true, trainer, ByUsage},
		{"/art/x", false, trainer, NoMatch},
		{"/art/x", true, &Crawler{Purposes: []usage.Purpose{usage.Search}}, NoMatch},
		{"/art/x", true, &Crawler{}, NoMatch},
		{"//art/x", true, trainer, ByUsage},
		{"/x", true, trainer, NoMatch},
		{"/private/x", true, trainer, ByRule},
	} {
		settings := defaults()
		settings.Readings = Strict
		target := canonical.Target{Scheme: "https", Host: "a.example", Path: c.path}
		d := settings.Judge(200, []byte(robots), target, nil)
		var u Usage
		if c.refuse {
			u.Reserved = RefuseReserved
		}
		u.Judge(&d, target, c.crawler, Strict)
		if d.Reason != c.want || d.Allow != (c.want == NoMatch) {
			t.Errorf("%s, %v, for %v: got %s, %v, want %s", c.path, c.refuse, c.crawler.Purposes, d.Reason, d.Allow, c.want)
		}
	}
}

// BenchmarkDecideUsage decides about an allowed request to an origin that is in memory.
func BenchmarkDecideUsage(b *testing.B) {
	const silent = "User-agent: *\nDisallow: /private/\nSitemap: https://example.com/sitemap.xml\n"
	for _, c := range []struct {
		name, robots, tdmrep string
		usage                Usage
	}{
		{"nothing", silent, "", Usage{}},
		{"nothing-refuse", silent, "", Usage{Reserved: RefuseReserved}},
		{"nothing-tdmrep", silent, "", Usage{Reserved: RefuseReserved, TDMRep: true}},
		{"stated", silent + "Content-Usage: train-ai=y\n", "", Usage{Reserved: RefuseReserved}},
		{"stated-all", silent + "Content-Usage: train-ai=n, search=y\nContent-Usage: /open/ train-ai=y\n" +
			"Content-Signal: search=yes, ai-train=no, ai-input=no\nLicense: https://example.com/license.xml\n", "", Usage{}},
		{"stated-tdmrep", silent, `[{"location": "/", "tdm-reservation": 0}]`, Usage{Reserved: RefuseReserved, TDMRep: true}},
	} {
		b.Run(c.name, func(b *testing.B) {
			web := newOrigins()
			web.Serve(example, rules(c.robots))
			if c.tdmrep != "" {
				web.Serve(tdmrepExample, rules(c.tdmrep))
			}
			k := &Crawler{Name: "k", Tokens: []string{"ExampleBot"}, Purposes: usage.Purposes}
			e := engineWith(b, Config{Crawlers: Crawlers{Known: []*Crawler{k}}, Robots: defaults(), Usage: c.usage, Transport: web})
			target := targetOf(b, "https://example.com/section-7/page?x=y")
			r := Request{Target: target, Crawler: k, UserAgent: "ExampleBot/1.0"}
			b.ReportAllocs()
			for b.Loop() {
				if d, err := e.Decide(b.Context(), r); err != nil || !d.Allow {
					b.Fatalf("got %+v, %v", d, err)
				}
			}
		})
	}
}

// busyStore gives no permission to fetch a tdmrep.json: another gate has it.
type busyStore struct{ *store.Memory }

func (busyStore) Acquire(ctx context.Context, key string) (func(), bool) {
	if snapshot.ParseKey(key).TDMRep {
		<-ctx.Done()
	}
	return nil, true
}

// TestTDMRepWait: a request waits for tdmrep.json no longer than Robots.Timeout, although another gate may take
// longer, and no longer than its client.
func TestTDMRepWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := newOrigins()
		web.Serve(tdmrepExample, slow(5*time.Second, rules(`[{"location": "/", "tdm-reservation": 1}]`)))
		e := engineWith(t, Config{Robots: defaults(), Usage: Usage{TDMRep: true}, Transport: web, Store: busyStore{store.NewMemory(1 << 20)}, Shared: true})
		ctx, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		begun := time.Now()
		if _, err := e.Decide(ctx, asks(t, "https://example.com/page", "Bot/1.0")); err != context.DeadlineExceeded || time.Since(begun) != time.Second {
			t.Errorf("a client that leaves: got %v after %v", err, time.Since(begun))
		}
		begun = time.Now()
		d := ask(t, e, "https://example.com/page", "Bot/1.0")
		if took := time.Since(begun); took != 10*time.Second || !d.Allow || d.TDMRep.State != snapshot.Unreachable || statedBy(d.Stated.Preferences...) != "nothing" {
			t.Errorf("got %+v after %v", d, took)
		}
		time.Sleep(20 * time.Second) // fake clock: the fetch goes on, and is there for later requests
		if d := ask(t, e, "https://example.com/page", "Bot/1.0"); statedBy(d.Stated.Preferences...) != "tdm:n:tdmrep:well-known" {
			t.Errorf("later: got %+v", d.Stated)
		}
	})
}
