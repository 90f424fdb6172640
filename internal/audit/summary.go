package audit

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// A Count is what has become of requests.
type Count struct {
	Requests int `json:"requests"`
	Allowed  int `json:"allowed"`
	Denied   int `json:"denied"`
	Reported int `json:"reported"` // denied, but let through
}

func (c *Count) add(r *Record) {
	c.Requests++
	switch {
	case r.Decision == "allow":
		c.Allowed++
	case r.Decision == "deny" && r.Enforced != nil && !*r.Enforced:
		c.Reported++
	case r.Decision == "deny":
		c.Denied++
	}
}

// A Named count is that of a crawler, a host or a reason.
type Named struct {
	Name string `json:"name"`
	Count
}

// A Summary is what logs come to.
type Summary struct {
	From time.Time `json:"from,omitzero"`
	To   time.Time `json:"to,omitzero"`
	Count
	Undecided int   `json:"undecided"` // no decision was made
	Errors    int   `json:"errors"`    // something went wrong, with or without a decision
	Bytes     int64 `json:"bytes"`
	Lost      int   `json:"lost"`    // could not be written, as the records say
	NoRecord  int   `json:"invalid"` // lines that are none

	reasons, crawlers, hosts, errors tally
}

// A tally counts by names. Of too many those with the smallest counts go, so that
// memory is bounded; what is left of those is less than it was.
type tally struct {
	counts map[string]*Count
	lossy  bool
}

const maxNames = 50_000

func (t *tally) add(name string, r *Record) {
	if t.counts == nil {
		t.counts = map[string]*Count{}
	}
	c := t.counts[name]
	if c == nil {
		if len(t.counts) >= maxNames {
			t.shrink()
		}
		c = &Count{}
		t.counts[strings.Clone(name)] = c
	}
	c.add(r)
}

// shrink lets go of the smaller half.
func (t *tally) shrink() {
	t.lossy = true
	names := t.top(maxNames)
	for _, n := range names[len(names)/2:] {
		delete(t.counts, n.Name)
	}
}

// top returns the n names with the most requests.
func (t *tally) top(n int) []Named {
	names := slices.SortedFunc(maps.Keys(t.counts), func(a, b string) int {
		return cmp.Or(t.counts[b].Requests-t.counts[a].Requests, strings.Compare(a, b))
	})
	all := make([]Named, 0, min(n, len(names)))
	for _, name := range names[:min(n, len(names))] {
		all = append(all, Named{name, *t.counts[name]})
	}
	return all
}

// Line takes the next line.
func (s *Summary) Line(l *Line) {
	r := l.Record
	if r == nil {
		s.NoRecord++
		return
	}
	if s.From.IsZero() || r.Time.Before(s.From) {
		s.From = r.Time
	}
	if r.Time.After(s.To) {
		s.To = r.Time
	}
	s.add(r)
	s.Bytes += r.Bytes
	s.Lost += r.Lost
	if r.Decision == "" {
		s.Undecided++
		s.reasons.add("no decision", r)
	} else {
		s.reasons.add(string(r.Reason), r)
	}
	s.crawlers.add(cmp.Or(r.Crawler, "(none)"), r)
	if _, host, ok := strings.Cut(r.Origin, "://"); ok {
		s.hosts.add(host, r)
	}
	if r.Error != "" {
		s.Errors++
		s.errors.add(r.Error, r)
	}
}

// Reasons returns the counts by reason, the most frequent first.
func (s *Summary) Reasons() []Named { return s.reasons.top(maxNames) }

// Crawlers returns the counts by crawler.
func (s *Summary) Crawlers() []Named { return s.crawlers.top(maxNames) }

// Hosts returns those with the most requests, and how many there are; about, if
// there are more than are counted.
func (s *Summary) Hosts(n int) (top []Named, all int, about bool) {
	return s.hosts.top(n), len(s.hosts.counts), s.hosts.lossy
}

// Failures returns the errors that are most frequent.
func (s *Summary) Failures(n int) []Named { return s.errors.top(n) }
