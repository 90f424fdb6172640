package snapshot

import (
	"cmp"
	"slices"
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

// maxOutages bounds the list of outages: clients may request any number of hosts that are down.
const maxOutages = 50

// Outages returns origins with a robots.txt that can't be fetched, as far as they are in memory, the last that was
// tried first.
func (r *Resolver) Outages() (all []Outage) {
	now := time.Now()
	for _, e := range r.entries.Values() {
		s, scope := e.Last, ParseKey(e.key)
		if s == nil || scope.TDMRep || r.settings.Classify(s) != Unreachable || r.get(e.key) != e {
			continue
		}
		res := r.settings.ResolveAt(s, e.Good, now)
		all = append(all, Outage{
			Origin: scope.Origin, Asker: scope.Asker, State: res.State, Allow: res.Allow,
			Status: s.Status, Error: s.Error, Failures: s.Failures, Since: s.Since, Tried: s.Fetched, Next: r.settings.until(s),
		})
	}
	slices.SortFunc(all, func(a, b Outage) int {
		return cmp.Or(b.Tried.Compare(a.Tried), cmp.Compare(a.Origin, b.Origin), cmp.Compare(a.Asker, b.Asker))
	})
	return all[:min(len(all), maxOutages)]
}
