package audit

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// A Count counts requests by their decisions.
type Count struct {
	Requests int `json:"requests"`
	Allowed  int `json:"allowed"`
	Denied   int `json:"denied"`
	Reported int `json:"reported"` // would be denied, but report mode let them through
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

// A Named is the count of a crawler, a host, a reason or an error.
type Named struct {
	Name string `json:"name"`
	Count
}

// A Summary counts what is in logs. It takes all lines with Line.
type Summary struct {
	From time.Time `json:"from,omitzero"`
	To   time.Time `json:"to,omitzero"`
	Count
	Undecided int   `json:"undecided"` // no decision was made
	Errors    int   `json:"errors"`    // with an error, and with or without a decision
	Bytes     int64 `json:"bytes"`     // of responses
	Lost      int   `json:"lost"`      // records that could not be written at the time, as other records say
	NoRecord  int   `json:"invalid"`   // lines that are no records

	reasons, crawlers, hosts, errors tally
}

// A tally counts by names. To bound the memory, the names with the smallest counts are
// forgotten when there are too many; if they come again, their counts are too low.
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

// shrink forgets the half of the names with the smaller counts.
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

// Hosts returns the n hosts with the most requests, and the number of all hosts. Both are
// estimates if there are more hosts than can be counted.
func (s *Summary) Hosts(n int) (top []Named, all int, estimated bool) {
	return s.hosts.top(n), len(s.hosts.counts), s.hosts.lossy
}

// Failures returns the n most frequent errors.
func (s *Summary) Failures(n int) []Named { return s.errors.top(n) }
