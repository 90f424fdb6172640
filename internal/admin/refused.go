package admin

import (
	"strings"
	"time"

	"robotsgate/internal/audit"
	"robotsgate/policy"
	"robotsgate/policy/snapshot"
	"robotsgate/proxy"
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
	Kind     string    `json:"kind"`                 // a [proxy.Refusal]
	Why      string    `json:"why"`                  // may have text from the network
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
func refusalOf(x *proxy.Record, redact bool) *Refusal {
	kind := x.Kind()
	if kind == "" {
		return nil
	}
	url := x.URL
	if redact {
		url = audit.Redact(url)
	}
	f := &Refusal{
		ID: x.ID, Time: x.Start.UTC().Truncate(time.Second), Crawler: kept(x.Crawler), Method: kept(x.Method), URL: kept(url), Cut: len(url) > maxKept, Redacted: url != x.URL,
		Kind: string(kind), Why: kept(why(x)), Status: x.Status, Reported: x.Refused == "" && !x.Decision.Enforced,
	}
	if x.Refused == proxy.ByLogin && x.Client.IsValid() {
		f.Client = x.Client.String()
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
func why(x *proxy.Record) string {
	if d := x.Decision; d != nil && d.Reason == policy.ByRule && x.Cause() != "" {
		return x.Cause() + " of " + d.RobotsURL
	}
	return x.Cause()
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
	if o.RedactQuery {
		url = audit.Redact(url)
	}
	begin, digest := beginning(url), snapshot.Digest(url)
	return o.find(func(f *Refusal) bool {
		return f.URL == begin && (!f.Cut && len(url) <= maxKept || f.Digest == digest) || f.URL == origin
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
