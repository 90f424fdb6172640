package admin

import (
	"strings"
	"time"

	"robotsgate/internal/record"
	"robotsgate/policy"
	"robotsgate/policy/snapshot"
)

// MaxRefusals is how many refusals are kept.
const MaxRefusals = 1000

// Latest is the maximum of refusals in a State.
const Latest = 20

// A Refusal is a request that was refused, or would have been in enforcing mode. Its texts are
// cut.
type Refusal struct {
	ID       string    `json:"id"`
	Time     time.Time `json:"time"`
	Crawler  string    `json:"crawler,omitempty"`
	Method   string    `json:"method"`
	URL      string    `json:"url"`
	Cut      bool      `json:"cut,omitempty"`        // URL is only the beginning
	Digest   string    `json:"url_sha256,omitempty"` // of the whole URL, if it is cut
	Redacted bool      `json:"redacted,omitempty"`   // values of its query have been replaced
	Kind     string    `json:"kind"`                 // a [record.Refusal]
	Why      string    `json:"why"`                  // may have text from the network
	Rule     string    `json:"rule,omitempty"`       // the line of robots.txt that denies
	Client   string    `json:"client,omitempty"`     // the address, of a client that is none of the crawlers
	Status   int       `json:"status,omitempty"`     // of the response
	Reported bool      `json:"reported,omitempty"`
}

// refusals are the last MaxRefusals.
type refusals struct {
	all  []Refusal
	next int // where the next one is put, if all are used
}

// refusalOf returns what is kept of a request that was refused or would have been; nil if it was neither.
func refusalOf(x *record.Record) *Refusal {
	kind := x.Kind()
	if kind == "" {
		return nil
	}
	url := x.Address()
	f := &Refusal{
		ID: x.ID, Time: x.Time.Truncate(time.Second), Crawler: kept(x.Crawler), Method: kept(x.Method), URL: kept(url), Cut: len(url) > maxKept, Redacted: x.Redacted,
		Kind: string(kind), Why: kept(why(x)), Rule: kept(x.Rule), Status: x.Status, Reported: !x.Denied(),
	}
	if x.Refused == record.ByLogin {
		f.Client = x.Client
	}
	if f.Cut {
		f.Digest = snapshot.Digest(url)
	}
	return f
}

// add keeps a refusal.
func (r *refusals) add(f Refusal) {
	if len(r.all) < MaxRefusals {
		r.all = append(r.all, f)
		return
	}
	r.all[r.next] = f
	r.next = (r.next + 1) % MaxRefusals
}

// why returns the reason of a refusal. A rule is stated with the robots.txt it is in.
func why(x *record.Record) string {
	if x.Decision == "deny" && policy.Reason(x.Reason) == policy.ByRule && x.Refused == "" {
		return x.Cause + " of " + x.Robots.URL
	}
	return x.Cause
}

// latest returns the last n, the newest first.
func (r *refusals) latest(n int) []Refusal {
	out := []Refusal{}
	for i := range r.all {
		f := r.all[(r.next-1-i+2*len(r.all))%len(r.all)]
		if len(out) == n {
			break
		}
		out = append(out, f)
	}
	return out
}

// Refusal returns the refusal of the request with an id, if it is one of the last MaxRefusals.
func (o *Overview) Refusal(id string) (Refusal, bool) {
	return o.find(func(f *Refusal) bool { return strings.EqualFold(f.ID, id) })
}

// RefusalOf returns the latest refusal of a request for a canonical URL, or of a tunnel to its origin, if it is one of
// the last MaxRefusals.
func (o *Overview) RefusalOf(url, origin string) (Refusal, bool) {
	is := func(f *Refusal, url string) bool {
		return f.URL == beginning(url) && (!f.Cut && len(url) <= maxKept || f.Digest == snapshot.Digest(url))
	}
	return o.find(func(f *Refusal) bool {
		return f.URL == origin || is(f, url) || f.Redacted && is(f, record.Redact(url))
	})
}

// find returns the latest refusal for which a function is true.
func (o *Overview) find(is func(*Refusal) bool) (Refusal, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, f := range o.refusals.latest(MaxRefusals) {
		if is(&f) {
			return f, true
		}
	}
	return Refusal{}, false
}
