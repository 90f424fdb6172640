package snapshot

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

// A Forbidden is a crawler to which an origin answers 401 or 403 for a robots.txt that the gate has: what the copy
// says no longer decides for this crawler.
type Forbidden struct {
	Origin  string    `json:"origin"`
	Crawler string    `json:"crawler,omitempty"`       // its name; empty: clients that match no configured crawler
	Token   string    `json:"product_token,omitempty"` // in lower case; empty: clients without one
	Status  int       `json:"status"`
	Allow   bool      `json:"allowed"` // everything is allowed to the crawler, or nothing
	Since   time.Time `json:"since"`
	Next    time.Time `json:"next"` // from then on a request asks again
}

// maxOutages bounds the list of outages: clients may request
// any number of hosts that are down. The last failures are the ones of interest.
const maxOutages = 50

// outages are the last sets of interest, at most maxOutages of each kind.
type outages struct {
	mu  sync.Mutex
	all []outage // the newest at the end
}

// An outage is a set in which an answer is a failure under some settings.
type outage struct {
	key  string // of the set's scope
	set  Set
	kind outageKind
}

type outageKind int

const (
	noOutage outageKind = iota
	failing             // a failure under all settings
	replaced            // a 401 or 403, although there is a copy
	refused             // a 401 or 403
)

func kindOf(set *Set) (kind outageKind) {
	if s, _, _ := (&Settings{}).outage(set, time.Now()); s != nil { // under the strictest settings
		return failing
	}
	for slot, s := range set.Bound {
		switch {
		case s.forbidden() && set.copyFor(slot) != nil:
			return replaced
		case s.forbidden():
			kind = refused
		}
	}
	return kind
}

// note takes note of the newest set under a key.
func (o *outages) note(key string, set *Set) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = slices.DeleteFunc(o.all, func(k outage) bool { return k.key == key })
	kind := kindOf(set)
	if kind == noOutage {
		return
	}
	first, n := -1, 0
	for i, k := range o.all {
		if k.kind == kind {
			if n++; first < 0 {
				first = i
			}
		}
	}
	if n == maxOutages {
		o.all = slices.Delete(o.all, first, first+1)
	}
	o.all = append(o.all, outage{key, *set, kind})
}

// newest returns the sets, the newest first.
func (o *outages) newest() []outage {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := slices.Clone(o.all)
	slices.Reverse(all)
	return all
}

// forbidden returns the crawlers that are answered 401 or 403 now although there is a copy.
func (o *outages) forbidden(r *Settings, now time.Time) (all []Forbidden) {
	later := now.Add(1) // no request has asked meanwhile
	for _, k := range o.newest() {
		for _, slot := range slices.Sorted(maps.Keys(k.set.Bound)) {
			s, good := k.set.Bound[slot], k.set.copyFor(slot)
			name, token, ok := SplitSlot(slot)
			if !ok || !s.forbidden() || s.NoSlot || good == nil || r.current(&k.set, slot, now, later) != s && !r.forbids(s) {
				continue
			}
			res := r.ResolveAt(s, good, now)
			if res.State == Fresh || res.State == Stale { // the copy goes on
				continue
			}
			if token == TokenKey(nil) {
				token = ""
			}
			all = append(all, Forbidden{ParseKey(k.key).Origin, name, token, s.Status, res.Allow, s.Since, r.until(s)})
		}
	}
	return all[:min(len(all), maxOutages)]
}

func isFailure(r *Settings, s *Snapshot) bool { return s != nil && r.Classify(s) == Unreachable }

// list returns the outages there are now, the last that was tried in front.
func (o *outages) list(r *Settings, now time.Time) (all []Outage) {
	for _, k := range o.newest() {
		s, slot, tokens := r.outage(&k.set, now)
		if s == nil {
			continue
		}
		res := r.ResolveAt(s, k.set.copyFor(slot), now)
		scope := ParseKey(k.key)
		all = append(all, Outage{
			Origin: scope.Origin, Crawlers: scope.Crawlers, Tokens: tokens, State: res.State, Allow: res.Allow,
			Status: s.Status, Error: s.Error, Failures: s.Failures, Since: s.Since, Tried: s.Fetched, Next: r.until(s),
		})
	}
	return all[:min(len(all), maxOutages)]
}

// outage returns the last failure in a set, nil if there is no outage now. bound is the
// slot that the failure binds, empty if it binds all crawlers; tokens are those of all crawlers
// with a failure. A failure that binds one crawler does not count after its lifetime, if the
// set has an answer for all crawlers that is valid or newer.
func (c *Settings) outage(set *Set, now time.Time) (s *Snapshot, bound string, tokens []string) {
	if isFailure(c, set.Last) {
		return set.Last, "", nil
	}
	later := now.Add(1) // no request has asked meanwhile
	for _, slot := range slices.Sorted(maps.Keys(set.Bound)) {
		b := set.Bound[slot]
		answered := set.Last != nil && (c.isValid(set.Last, now, later) || !set.Last.Fetched.Before(b.Fetched))
		_, token, ok := SplitSlot(slot)
		if !ok || !isFailure(c, b) || answered && !c.isValid(b, now, later) && !c.forbids(b) {
			continue
		}
		if token = strings.Trim(token, "()"); !slices.Contains(tokens, token) {
			tokens = append(tokens, token)
		}
		if s == nil || !b.Fetched.Before(s.Fetched) {
			s, bound = b, slot
		}
	}
	return s, bound, tokens
}
