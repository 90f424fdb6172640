package snapshot

import (
	"slices"
	"sync"
	"time"
)

// An Outage is an origin with a robots.txt that can't be fetched.
type Outage struct {
	Origin   string    `json:"origin"`
	Asker    string    `json:"asker"`             // to which crawlers it answers so: the User-Agent of the fetch, and its key if it is signed
	State    State     `json:"meanwhile"`         // Fresh or Stale: a copy is obeyed meanwhile; Unreachable: there is none
	Allow    bool      `json:"allowed,omitempty"` // without a copy: whether everything is allowed, or nothing
	Status   int       `json:"status,omitempty"`  // 0: no answer
	Error    string    `json:"error"`
	Failures int       `json:"failures"` // in a row
	Since    time.Time `json:"since"`
	Tried    time.Time `json:"tried"` // last
	Next     time.Time `json:"next"`  // from then on a request tries again
}

// A Forbidden is an asker to which an origin answers 401 or 403 for a robots.txt that the gate has: what the copy
// says no longer decides.
type Forbidden struct {
	Origin string    `json:"origin"`
	Asker  string    `json:"asker"` // as in Outage
	Status int       `json:"status"`
	Allow  bool      `json:"allowed"` // everything is allowed, or nothing
	Since  time.Time `json:"since"`
	Next   time.Time `json:"next"` // from then on a request asks again
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

func kindOf(set *Set) outageKind {
	switch last := set.Last; {
	case isFailure(&Settings{HTML: "unreachable"}, last): // under the strictest settings
		return failing
	case last == nil || !last.forbidden():
		return noOutage
	case set.Good != nil:
		return replaced
	}
	return refused
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

// forbidden returns the askers that are answered 401 or 403 now although there is a copy.
func (o *outages) forbidden(r *Settings, now time.Time) (all []Forbidden) {
	later := now.Add(1) // no request has asked meanwhile
	for _, k := range o.newest() {
		s, good := k.set.Last, k.set.Good
		if s == nil || !s.forbidden() || good == nil || !r.isValid(s, now, later) && !r.forbids(s) {
			continue
		}
		res := r.ResolveAt(s, good, now)
		if res.State == Fresh || res.State == Stale { // the copy goes on
			continue
		}
		scope := ParseKey(k.key)
		all = append(all, Forbidden{scope.Origin, scope.Asker, s.Status, res.Allow, s.Since, r.until(s)})
	}
	return all[:min(len(all), maxOutages)]
}

func isFailure(r *Settings, s *Snapshot) bool { return s != nil && r.Classify(s) == Unreachable }

// list returns the outages there are now, the last that was tried in front.
func (o *outages) list(r *Settings, now time.Time) (all []Outage) {
	for _, k := range o.newest() {
		s := k.set.Last
		if !isFailure(r, s) {
			continue
		}
		res := r.ResolveAt(s, k.set.Good, now)
		scope := ParseKey(k.key)
		all = append(all, Outage{
			Origin: scope.Origin, Asker: scope.Asker, State: res.State, Allow: res.Allow,
			Status: s.Status, Error: s.Error, Failures: s.Failures, Since: s.Since, Tried: s.Fetched, Next: r.until(s),
		})
	}
	return all[:min(len(all), maxOutages)]
}
