package audit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"robotsgate/internal/record"
)

// A Named is the count of a gate, a crawler, a host, a reason or an error.
type Named struct {
	Name string
	record.Counts
}

// A Summary counts what is in logs. It takes all lines with Line.
type Summary struct {
	From time.Time // the first and the last time of an entry
	To   time.Time
	record.Counts
	Errors  int   // with an error, and with or without a decision
	Bytes   int64 // of responses
	Lost    int   // entries that could not be written at the time, as other entries say
	NoEntry int   // lines that are no entries

	Gates    Tally
	Reasons  Tally
	Crawlers Tally
	Hosts    Tally
	Rules    Tally // by origin, line and text of the rule
	Failures Tally // by error
}

// A Tally counts by names. To bound the memory, long names are cut, and the names with the smallest
// counts are forgotten when there are too many; if they come again, their counts are too low.
type Tally struct {
	Estimated bool // names have been forgotten
	counts    map[string]*record.Counts
}

const (
	maxNames = 50_000
	maxName  = 500 // bytes
)

func (t *Tally) add(name string, r *record.Record) {
	if t.counts == nil {
		t.counts = map[string]*record.Counts{}
	}
	if len(name) > maxName {
		name = strings.ToValidUTF8(name[:maxName], "") + "…"
	}
	c := t.counts[name]
	if c == nil {
		if len(t.counts) >= maxNames {
			t.Estimated = true
			for _, n := range t.Top(maxNames)[maxNames/2:] {
				delete(t.counts, n.Name)
			}
		}
		c = &record.Counts{}
		t.counts[strings.Clone(name)] = c
	}
	c.Count(r)
}

// Len returns the number of names.
func (t *Tally) Len() int { return len(t.counts) }

// Top returns the n names with the most requests.
func (t *Tally) Top(n int) []Named {
	all := make([]Named, 0, len(t.counts))
	for name, c := range t.counts {
		all = append(all, Named{name, *c})
	}
	slices.SortFunc(all, func(a, b Named) int {
		return cmp.Or(cmp.Compare(b.Sum(), a.Sum()), strings.Compare(a.Name, b.Name))
	})
	return all[:min(n, len(all))]
}

// The names under which entries without a gate, a crawler or a decision are counted.
const (
	noGate     = "(unknown)" // entries of an earlier version
	noCrawler  = "(none)"
	noDecision = "no decision"
)

// Requests returns the number of requests.
func (s *Summary) Requests() int { return int(s.Sum()) }

// Line takes the next line.
func (s *Summary) Line(l *Line) {
	r := l.Record
	if r == nil {
		s.NoEntry++
		return
	}
	if s.From.IsZero() || r.Time.Before(s.From) {
		s.From = r.Time
	}
	if r.Time.After(s.To) {
		s.To = r.Time
	}
	s.Count(r)
	s.Bytes += r.Bytes
	s.Lost += r.Lost
	s.Gates.add(cmp.Or(r.Gate, noGate), r)
	s.Reasons.add(cmp.Or(string(r.Refused), r.Reason, noDecision), r)
	s.Crawlers.add(cmp.Or(r.Crawler, noCrawler), r)
	if _, host, ok := strings.Cut(r.Origin, "://"); ok {
		s.Hosts.add(host, r)
	}
	if r.Rule != "" {
		s.Rules.add(fmt.Sprintf("%s line %d: %s", r.Origin, r.Line, r.Rule), r)
	}
	if r.Error != "" {
		s.Errors++
		s.Failures.add(r.Error, r)
	}
}
