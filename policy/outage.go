package policy

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// An Outage is an origin whose robots.txt can't be had.
type Outage struct {
	Origin   string
	Crawlers bool     // it was met by a configured crawler, and concerns them; else all other clients
	Tokens   []string // the product tokens that are answered so; empty: all
	State    State    // what is obeyed meanwhile: a copy that is Fresh or Stale; Unreachable: none
	Allow    bool     // without a copy: whether everything is allowed, or nothing
	Status   int      // 0: no answer
	Error    string
	Failures int // in a row
	Since    time.Time
	Tried    time.Time // last
	Next     time.Time // from then on a request tries again
}

// maxOutages bounds the origins whose outages are remembered: clients may ask
// for any number of hosts that are down. The last failures are what is looked for.
const maxOutages = 50

// outages are the origins that have last failed, the newest at the end.
type outages struct {
	mu  sync.Mutex
	all []outage
}

// An outage is what is needed of a record to judge it by any settings.
type outage struct {
	key    string // of the record's scope
	good   *Snapshot
	last   *Snapshot // what speaks for the origin; not a failure if bound has some
	bound  map[string]*Snapshot
	copies map[string]*Snapshot
}

// note takes down what is known by now, in the record with this key.
func (o *outages) note(key string, rec *Record) {
	next, failing := failure(key, rec)
	o.mu.Lock()
	defer o.mu.Unlock()
	if i := slices.IndexFunc(o.all, func(k outage) bool { return k.key == key }); i >= 0 {
		o.all = slices.Delete(o.all, i, i+1)
	} else if failing && len(o.all) == maxOutages {
		o.all = slices.Delete(o.all, 0, 1)
	}
	if failing {
		o.all = append(o.all, next)
	}
}

// failure returns what of a record may be an outage; the settings say whether it is.
func failure(key string, rec *Record) (k outage, failing bool) {
	k = outage{key: key, good: rec.Good, last: rec.Last, copies: rec.Copies}
	if suspect(rec.Last) {
		return k, true
	}
	for token, s := range rec.Bound {
		if suspect(s) {
			if k.bound == nil {
				k.bound = map[string]*Snapshot{}
			}
			k.bound[token] = s
		}
	}
	return k, k.bound != nil
}

// suspect reports whether a snapshot is an outage under the strictest settings.
func suspect(s *Snapshot) bool { return s != nil && (&Robots{}).class(s) == Unreachable }

// list returns the outages there are now, the last that was tried in front.
func (o *outages) list(r *Robots, now time.Time) (all []Outage) {
	o.mu.Lock()
	known := slices.Clone(o.all)
	o.mu.Unlock()
	for _, k := range slices.Backward(known) {
		s, token, tokens := k.now(r, now)
		if s == nil {
			continue
		}
		rec := Record{Good: k.good, Copies: k.copies}
		st := r.resolution(s, rec.copyFor(token), now)
		scope := ParseKey(k.key)
		all = append(all, Outage{
			Origin: scope.Origin, Crawlers: scope.Crawlers, Tokens: tokens, State: st.State, Allow: st.Allow,
			Status: s.Status, Error: s.Error, Failures: s.Failures, Since: s.Since, Tried: s.Fetched, Next: r.until(s),
		})
	}
	return all
}

// now returns the failure that stands for an outage, nil if it is over, the token that it
// binds, if it binds one only, and all tokens that are answered so. A failure that
// binds a single crawler is over with its time if the origin has answered others.
func (k *outage) now(r *Robots, now time.Time) (s *Snapshot, bound string, tokens []string) {
	if suspect(k.last) {
		if r.class(k.last) != Unreachable {
			return nil, "", nil
		}
		return k.last, "", nil
	}
	later := now.Add(1) // nobody has asked meanwhile
	for _, token := range slices.Sorted(maps.Keys(k.bound)) {
		b := k.bound[token]
		answered := k.last != nil && (r.holds(k.last, now, later) || !k.last.Fetched.Before(b.Fetched))
		if r.class(b) != Unreachable || answered && !r.holds(b, now, later) {
			continue
		}
		tokens = append(tokens, strings.Trim(token, "()"))
		if s == nil || !b.Fetched.Before(s.Fetched) {
			s, bound = b, token
		}
	}
	return s, bound, tokens
}
