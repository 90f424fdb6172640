package admin

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/internal/gatetest"
	"robotsgate/internal/record"
	"robotsgate/policy"
	"robotsgate/policy/robotstxt"
	"robotsgate/policy/snapshot"
	"robotsgate/policy/usage"
)

// ended is the record of a request that ends now.
func ended(url string, d *policy.Decision) *record.Record {
	x := &record.Record{Time: time.Now().Add(-time.Second), Duration: 1}
	scheme, rest, _ := strings.Cut(url, "://")
	if host := rest[:len(rest)-len(strings.TrimLeft(rest, "abcdefghijklmnopqrstuvwxyz.-0123456789:"))]; host != "" {
		x.Origin, x.Path = scheme+"://"+host, rest[len(host):]
	}
	if d != nil {
		d.Record(x)
	}
	if d != nil && d.Reason == policy.ByRule && !d.Allow {
		x.Cause = fmt.Sprintf("robots.txt line %d: %s", d.Rule.Line, d.Rule)
	}
	return x
}

var allowed = &policy.Decision{Allow: true, Enforced: true, Reason: policy.NoMatch}

// deniedBy is a denial by a line of the robots.txt of http://a.example.
func deniedBy(line int, pattern string, enforced bool) *policy.Decision {
	return &policy.Decision{Enforced: enforced, Reason: policy.ByRule, RobotsURL: "http://a.example/robots.txt",
		Robots: &snapshot.Resolution{Snapshot: &snapshot.Snapshot{}}, Rule: robotstxt.Rule{Line: line, Pattern: pattern}}
}

func TestCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := NewOverview()
		begin := time.Now().UTC() // midnight
		requests := func(n int, d *policy.Decision) {
			for range n {
				o.Request(ended("http://a.example/x", d))
			}
		}
		requests(1, nil)
		requests(2, allowed)
		requests(3, deniedBy(1, "/x", true))
		requests(4, deniedBy(1, "/x", false))
		first := record.Counts{Allowed: 2, Denied: 3, Reported: 4, Undecided: 1}
		check := func(when string, want State) {
			t.Helper()
			got := o.State()
			now := time.Now().UTC().Truncate(time.Minute)
			if len(got.Minutes) != Minutes || !got.Minutes[Minutes-1].Begin.Equal(now) || !got.Minutes[0].Begin.Equal(now.Add(-59*time.Minute)) {
				t.Errorf("%s: %d minutes from %v", when, len(got.Minutes), got.Minutes[0].Begin)
			}
			for i, m := range got.Minutes {
				if want := map[bool]record.Counts{true: first}[m.Begin.Equal(begin)]; m.Counts != want {
					t.Errorf("%s: minute %d has %+v, want %+v", when, i, m.Counts, want)
				}
			}
			if got.Rate != want.Rate || got.Total != want.Total || got.Hour != want.Hour || !got.Started.Equal(begin) {
				t.Errorf("%s: got %v, %+v, %+v, want %v, %+v, %+v", when, got.Rate, got.Total, got.Hour, want.Rate, want.Total, want.Hour)
			}
		}
		check("in the first second", State{Total: first, Hour: first})
		time.Sleep(time.Second) // fake clock
		check("after it", State{Rate: 10, Total: first, Hour: first})
		time.Sleep(9 * time.Second) // fake clock
		check("after ten", State{Rate: 1, Total: first, Hour: first})
		time.Sleep(time.Second) // fake clock
		check("after eleven", State{Total: first, Hour: first})
		time.Sleep(time.Until(begin.Add(time.Hour - time.Nanosecond))) // fake clock
		check("just in the hour", State{Total: first, Hour: first})
		time.Sleep(time.Nanosecond) // fake clock
		check("an hour later", State{Total: first})
		time.Sleep(time.Hour) // fake clock
		requests(1, allowed)
		if got := o.State(); got.Hour != (record.Counts{Allowed: 1}) || got.Minutes[Minutes-1].Allowed != 1 {
			t.Errorf("two hours later: got %+v", got.Hour)
		}
	})
}

func TestTop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := NewOverview()
		override := &policy.Decision{Enforced: true, Reason: policy.ByOverride, Note: "the contract has ended"}
		unreachable := &policy.Decision{Enforced: true, Reason: policy.IsUnreachable, RobotsURL: "http://c.example/robots.txt", Robots: &snapshot.Resolution{Snapshot: &snapshot.Snapshot{}}}
		long := "/" + strings.Repeat("ä", 200)
		for n, x := range []*record.Record{
			ended("https://d.example/private/", deniedBy(9, long, true)),
			ended("https://c.example:8443?q", unreachable),
			ended("http://b.example/", override),
			ended("http://a.example/x/y", deniedBy(1, "/x", true)),
			ended("http://a.example/y", deniedBy(2, "/y", false)),
			ended("http://a.example/z", allowed),
			ended("", nil),
		} {
			for range n + 1 {
				o.Request(x)
			}
		}
		const hosts = "[{a.example 4 5} {b.example 3 0} {c.example:8443 2 0} {d.example 1 0}]"
		rules := "[{{http://a.example 1 /x false} 4 0} {{ 0 the contract has ended false} 3 0} {{http://a.example 9 /" +
			strings.Repeat("ä", 127) + " false} 1 0} {{http://a.example 2 /y false} 0 5}]"
		for _, step := range []struct {
			after        time.Duration
			hosts, rules string
		}{
			{0, hosts, rules},
			{59*time.Minute + 59*time.Second, hosts, rules},
			{time.Second, "[]", "[]"},
		} {
			time.Sleep(step.after) // fake clock
			s := o.State()
			if got := fmt.Sprint(s.Hosts); got != step.hosts {
				t.Errorf("hosts after %v: got %s, want %s", step.after, got, step.hosts)
			}
			if got := fmt.Sprint(s.Rules); got != step.rules {
				t.Errorf("rules after %v: got %s, want %s", step.after, got, step.rules)
			}
		}
	})
}

// TestFlood denies once at each of thousands of hosts and by each of thousands of rules, and
// often at one host and by one rule: these are found, no count is too high, and the memory
// does not grow.
func TestFlood(t *testing.T) {
	o := NewOverview()
	seed := 0
	flood := func(n int) {
		seed++
		for i := range n {
			name := fmt.Sprintf("%d-%d.example", i, seed)
			d := deniedBy(i, "/"+name+strings.Repeat("/x", 2000), true)
			d.RobotsURL = "http://" + name + strings.Repeat(".x", 1000) + "/robots.txt"
			o.Request(ended("http://"+name+strings.Repeat(".x", 1000)+"/", d))
			if i%20 == 0 {
				o.Request(ended("http://often.example/", deniedBy(7, "/often", true)))
			}
		}
	}
	flood(500)
	before := gatetest.Heap()
	flood(5000)
	if grown := gatetest.Heap() - before; grown > 1<<20 {
		t.Errorf("%d bytes more", grown)
	}
	s := o.State()
	if len(s.Hosts) != Top || s.Hosts[0] != (Tally[string]{"often.example", 275, 0}) {
		t.Errorf("got %d hosts, in front %+v", len(s.Hosts), s.Hosts[0])
	}
	if want := (Tally[Rule]{Rule{Origin: "http://a.example", Line: 7, Text: "/often"}, 275, 0}); len(s.Rules) != Top || s.Rules[0] != want {
		t.Errorf("got %d rules, in front %+v", len(s.Rules), s.Rules[0])
	}
	for _, h := range s.Hosts[1:] {
		if h.Denied != 1 || len(h.Of) > maxKept {
			t.Errorf("a host of %d bytes was denied once, got %d times", len(h.Of), h.Denied)
		}
	}
}

// TestAtOnce counts from many goroutines while others read the state.
func TestAtOnce(t *testing.T) {
	o := NewOverview()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 1000 {
				o.Request(ended(fmt.Sprintf("http://%d.example/", i%300), deniedBy(i%200, "/x", i%2 == 0)))
				if i%100 == 0 {
					o.State()
				}
			}
		})
	}
	wg.Wait()
	if got := o.State().Total; got != (record.Counts{Denied: 2000, Reported: 2000}) {
		t.Errorf("got %+v", got)
	}
}

// TestCauses: requests without a decision are counted by cause, those with one are not.
func TestCauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := NewOverview()
		for n, kind := range []record.Refusal{"", record.ByGuard, record.IsMalformed, "new kind"} {
			for range n + 1 {
				x := ended("", nil)
				x.Refused = kind
				o.Request(x)
			}
		}
		x := ended("http://a.example/", deniedBy(1, "/", true))
		x.Refused = record.ByLimit
		o.Request(x)
		for _, step := range []struct {
			after time.Duration
			want  string
		}{
			{0, "[{failed 5} {malformed 3} {guard 2}]"},
			{time.Hour, "[]"},
		} {
			time.Sleep(step.after) // fake clock
			if got := fmt.Sprint(o.State().Causes); got != step.want {
				t.Errorf("after %v: got %s, want %s", step.after, got, step.want)
			}
		}
	})
}

// TestRefused: a request that was decided, and then refused for another reason, counts as refused, whatever the decision.
func TestRefused(t *testing.T) {
	o := NewOverview()
	for _, kind := range []record.Refusal{record.ByPace, record.ByBudget, record.ByLimit} {
		for _, d := range []*policy.Decision{allowed, deniedBy(1, "/x", false)} {
			x := ended("http://a.example/x", d)
			x.Refused = kind
			o.Request(x)
		}
	}
	x := ended("http://a.example/x", deniedBy(1, "/x", true))
	o.Request(x)
	if got, want := o.State().Total, (record.Counts{Denied: 1, Refused: 6}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestLastRefusals: the last refusals are kept, the newest first, with bounded texts.
func TestLastRefusals(t *testing.T) {
	o := NewOverview()
	o.Request(ended("http://a.example/allowed", allowed))
	o.Request(&record.Record{ID: "failed", Error: "no such host"})
	if got := o.State().Refusals; len(got) != 0 {
		t.Errorf("without refusals: %v", got)
	}
	long := strings.Repeat("x", 100_000)
	for i := range MaxRefusals + 5 {
		o.Request(&record.Record{ID: fmt.Sprint("id", i), Time: time.Unix(1, 0), URL: "http://a.example/" + long, Method: long, Crawler: long,
			Refused: record.ByGuard, Cause: "prohibited " + long})
	}
	o.Request(ended("http://a.example/x", deniedBy(7, "/x", false)))
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
	if n := len(second.URL) + len(second.Method) + len(second.Crawler) + len(second.Why); n > 4*maxKept {
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
	o := NewOverview()
	request := func(crawler string, x *record.Record) {
		x.Crawler = crawler
		o.Request(x)
	}
	request("", &record.Record{Refused: record.ByLogin})
	request("a", &record.Record{})
	request("b", ended("http://a.example/", allowed))
	request("b", ended("http://a.example/x", deniedBy(1, "/x", true)))
	request("b", ended("http://a.example/x", deniedBy(1, "/x", false)))
	got := o.State().Seen
	if len(got) != 2 || got[0].Seen.IsZero() || got[1].Name != "a" || got[1].Undecided != 1 {
		t.Fatalf("got %v", got)
	}
	got[0].Seen = time.Time{}
	if want := (Crawler{Name: "b", Requests: 3, Counts: record.Counts{Allowed: 1, Denied: 1, Reported: 1}}); got[0] != want {
		t.Errorf("got %+v, want %+v", got[0], want)
	}
	for i := range 2 * maxCrawlers {
		request(fmt.Sprint("crawler", i), &record.Record{})
	}
	if n := len(o.crawlers); n != maxCrawlers {
		t.Errorf("%d crawlers are kept, want %d", n, maxCrawlers)
	}
	if n := len(o.State().Seen); n != Crawlers {
		t.Errorf("%d crawlers are shown, want %d", n, Crawlers)
	}
}

// TestReservedRule: a preference that denies is among the rules that deny.
func TestReservedRule(t *testing.T) {
	o := NewOverview()
	x := ended("http://a.example/x", &policy.Decision{Enforced: true, Reason: policy.ByUsage,
		Reserved: usage.Preference{Category: "train-ai", Source: usage.ContentUsage, In: usage.InRobots, Line: 4}})
	o.Request(x)
	want := Rule{Origin: "http://a.example", Line: 4, Text: "train-ai=n from content-usage", Usage: true}
	if rules := o.State().Rules; len(rules) != 1 || rules[0].Of != want {
		t.Errorf("got %+v, want %+v", rules, want)
	}
}
