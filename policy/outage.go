package policy

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// An Outage is an origin with a robots.txt that can't be fetched.
type Outage struct {
	Origin   string    `json:"origin"`
	Crawlers bool      `json:"crawlers,omitempty"`       // it concerns the configured crawlers; else all other clients
	Tokens   []string  `json:"product_tokens,omitempty"` // the product tokens that are answered so; empty: all
	State    State     `json:"meanwhile"`                // Fresh or Stale: a copy is obeyed meanwhile; Unreachable: there is none
	Allow    bool      `json:"allowed,omitempty"`        // without a copy: whether everything is allowed, or nothing
	Status   int       `json:"status,omitempty"`         // 0: no answer
	Error    string    `json:"error"`
	Failures int       `json:"failures"` // in a row
	Since    time.Time `json:"since"`
	Tried    time.Time `json:"tried"` // last
	Next     time.Time `json:"next"`  // from then on a request tries again
}

// maxOutages bounds the list of outages: clients may request
// any number of hosts that are down. The last failures are the ones of interest.
const maxOutages = 50

// outages are the records of the origins that failed last.
type outages struct {
	mu  sync.Mutex
	all []outage // the newest at the end
}

// An outage is a record in which an answer is a failure under some settings.
type outage struct {
	key string // of the record's scope
	rec Record
}

// note takes note of the newest record under a key.
func (o *outages) note(key string, rec *Record) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = slices.DeleteFunc(o.all, func(k outage) bool { return k.key == key })
	if s, _, _ := (&Robots{}).outage(rec, time.Now()); s == nil { // under the strictest settings
		return
	}
	if len(o.all) == maxOutages {
		o.all = slices.Delete(o.all, 0, 1)
	}
	o.all = append(o.all, outage{key, *rec})
}

func isFailure(r *Robots, s *Snapshot) bool { return s != nil && r.Classify(s) == Unreachable }

// list returns the outages there are now, the last that was tried in front.
func (o *outages) list(r *Robots, now time.Time) (all []Outage) {
	o.mu.Lock()
	known := slices.Clone(o.all)
	o.mu.Unlock()
	for _, k := range slices.Backward(known) {
		s, token, tokens := r.outage(&k.rec, now)
		if s == nil {
			continue
		}
		res := r.ResolveAt(s, k.rec.copyFor(token), now)
		scope := ParseKey(k.key)
		all = append(all, Outage{
			Origin: scope.Origin, Crawlers: scope.Crawlers, Tokens: tokens, State: res.State, Allow: res.Allow,
			Status: s.Status, Error: s.Error, Failures: s.Failures, Since: s.Since, Tried: s.Fetched, Next: r.until(s),
		})
	}
	return all
}

// outage returns the last failure in a record, nil if there is no outage now. bound is the
// token that the failure binds, empty if it binds all crawlers; tokens are those of all crawlers
// with a failure. A failure that binds one crawler does not count after its lifetime, if the
// record has an answer for all crawlers that is valid or newer.
func (r *Robots) outage(rec *Record, now time.Time) (s *Snapshot, bound string, tokens []string) {
	if isFailure(r, rec.Last) {
		return rec.Last, "", nil
	}
	later := now.Add(1) // no request has asked meanwhile
	for _, token := range slices.Sorted(maps.Keys(rec.Bound)) {
		b := rec.Bound[token]
		answered := rec.Last != nil && (r.isValid(rec.Last, now, later) || !rec.Last.Fetched.Before(b.Fetched))
		if !isFailure(r, b) || answered && !r.isValid(b, now, later) {
			continue
		}
		tokens = append(tokens, strings.Trim(token, "()"))
		if s == nil || !b.Fetched.Before(s.Fetched) {
			s, bound = b, token
		}
	}
	return s, bound, tokens
}
