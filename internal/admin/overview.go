package admin

import (
	"strings"
	"sync"
	"time"

	"robotsgate/internal/record"
	"robotsgate/policy"
)

// Minutes is the number of minutes in an overview.
const Minutes = 60

// rateOver is the number of seconds that the rate is measured over.
const rateOver = 10

// A Minute counts the requests that ended in it.
type Minute struct {
	Begin time.Time `json:"begin"`
	record.Counts
}

// A Rule is the reason of denials: a line of a robots.txt, a usage preference, or an override.
type Rule struct {
	Origin string `json:"origin,omitempty"` // empty for an override
	Line   int    `json:"line,omitempty"`
	Text   string `json:"text"`            // the pattern of a Disallow, the preference, or the reason of an override
	Usage  bool   `json:"usage,omitempty"` // it is a preference
}

// State is an overview at one time.
type State struct {
	Started time.Time       `json:"started"`
	Rate    float64         `json:"requests_per_second"` // over the last ten seconds
	Total   record.Counts   `json:"total"`               // since Started
	Hour    record.Counts   `json:"hour"`
	Minutes []Minute        `json:"minutes"`      // the last is the current one
	Causes  []Cause         `json:"undecided_by"` // of Hour.Undecided
	Hosts   []Tally[string] `json:"denied_hosts"`
	Rules   []Tally[Rule]   `json:"denying_rules"`

	Refusals []Refusal `json:"refusals"`            // the newest first
	Seen     []Crawler `json:"requests_by_crawler"` // since Started
}

// An Overview counts the requests of the last hour, for the status page: by minute, and by the hosts and rules that are
// denied most. Its memory is bounded. It is safe for concurrent use.
type Overview struct {
	started time.Time

	mu      sync.Mutex
	total   record.Counts
	seconds ring[uint64] // requests, by Unix time
	minutes ring[minute]
	hosts   recent[string]
	rules   recent[Rule]

	refusals refusals
	crawlers byCrawler
}

type minute struct {
	record.Counts
	causes [len(kinds)]uint64
}

// NewOverview returns an overview without requests.
func NewOverview() *Overview {
	return &Overview{
		started: time.Now(), seconds: newRing[uint64](rateOver + 1), minutes: newRing[minute](Minutes),
		hosts: recent[string]{newRing[window[string]](windows)}, rules: recent[Rule]{newRing[window[Rule]](windows)},
		crawlers: byCrawler{},
	}
}

// Request counts a request, after its end.
func (o *Overview) Request(x *record.Record) {
	end := max(x.Time.Add(x.Took()).Unix(), 0)
	refusal := refusalOf(x)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.total.Count(x)
	*o.seconds.of(end)++
	at := end / 60
	m := o.minutes.of(at)
	m.Count(x)
	switch x.Decision {
	case "":
		m.causes[kindOf(x)]++
	case "deny":
		o.deniedLocked(x, at)
	}
	if refusal != nil {
		o.refusals.add(*refusal)
	}
	o.crawlers.add(x, end)
}

// deniedLocked counts the host and the rule of a denial. If the robots.txt is unreachable, no
// rule denied. The caller holds mu.
func (o *Overview) deniedLocked(x *record.Record, at int64) {
	enforced := !x.Reported()
	_, host, _ := strings.Cut(x.Origin, "://")
	o.hosts.add(at, kept(host), enforced)
	switch policy.Reason(x.Reason) {
	case policy.ByRule:
		origin := strings.TrimSuffix(x.Robots.URL, "/robots.txt")
		o.rules.add(at, Rule{Origin: kept(origin), Line: x.Line, Text: kept(strings.TrimPrefix(x.Rule, "Disallow: "))}, enforced)
	case policy.ByUsage:
		r := Rule{Origin: kept(x.Origin), Text: "the page's head was not read whole", Usage: true}
		if p := x.Reserved; p != nil {
			r.Line, r.Text = p.Line, kept(p.Use+"="+p.Value+" from "+string(p.Source))
		}
		o.rules.add(at, r, enforced)
	case policy.ByOverride:
		o.rules.add(at, Rule{Text: kept(x.Note)}, enforced)
	}
}

// maxKept bounds a text that is kept, in bytes. A host name has 253 at most.
const maxKept = 256

func beginning(s string) string {
	if len(s) <= maxKept {
		return s
	}
	return strings.ToValidUTF8(s[:maxKept], "") // without a part of a character
}

// kept returns a copy of a text, cut. A part of a robots.txt or of a request's head would keep all of it in memory.
func kept(s string) string { return strings.Clone(beginning(s)) }

// Top is the maximum of hosts and of rules in a State.
const Top = 10

// State returns the current counts.
func (o *Overview) State() State {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	this := now.Unix() / 60
	s := State{
		Started: o.started, Total: o.total, Rate: o.rateLocked(now), Minutes: make([]Minute, 0, Minutes),
		Hosts: o.hosts.top(this, Top, strings.Compare), Rules: o.rules.top(this, Top, Rule.compare),
		Refusals: o.refusals.latest(Latest), Seen: o.crawlers.busiest(Crawlers),
	}
	var causes [len(kinds)]uint64
	for at, had := range o.minutes.until(this, Minutes) {
		m := Minute{Begin: time.Unix(at*60, 0).UTC(), Counts: had.Counts}
		for i, n := range had.causes {
			causes[i] += n
		}
		s.Hour.Add(m.Counts)
		s.Minutes = append(s.Minutes, m)
	}
	s.Causes = causesOf(causes)
	return s
}

// rateLocked returns the requests per second in the last ten seconds, or since the start. The
// caller holds mu.
func (o *Overview) rateLocked(now time.Time) float64 {
	this, n := now.Unix(), uint64(0)
	for _, requests := range o.seconds.until(this-1, rateOver) {
		n += requests
	}
	over := min(max(this-o.started.Unix(), 1), rateOver)
	return float64(n) / float64(over)
}
