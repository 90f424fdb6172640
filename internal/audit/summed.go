package audit

import (
	"fmt"
	"math"
	"time"

	"robotsgate/internal/console"
)

// top is how many hosts, rules, preferences and errors are listed.
const top = 20

// A sumReport summarises the entries.
type sumReport struct {
	*Summary
	terminal bool // standard output is one
	s        console.Streams
	invalid  invalidLines
}

func (t *sumReport) Line(l *Line) {
	t.Summary.Line(l)
	t.invalid.add(l)
}

// invalidLines has a warning for each of the first lines that are no entries.
type invalidLines []string

func (i *invalidLines) add(l *Line) {
	const most = 20
	if l.Record == nil && len(*i) < most {
		*i = append(*i, fmt.Sprintf("%s: %v", l.At(), l.Err))
	}
}

func (i invalidLines) warn(s console.Streams) {
	for _, text := range i {
		s.Warn("%s", text)
	}
}

// A summary is the result of a sumReport.
type summary struct {
	*Summary
	Gates     []Named
	Reasons   []Named
	Crawlers  []Named
	Hosts     []Named
	Names     int
	Estimated bool
	Rules     []Named
	RuleCount int
	Guessed   bool
	Failures  []Named

	Preferences []Stated
	Stated      int
	AtLeast     bool

	Bars string // on a terminal: the requests by hour
}

// bars returns a row of bars, one for each of the last hours of a log, "" if there is only one.
func bars(s *Summary) string {
	const most, heights = 72, "▁▂▃▄▅▆▇█"
	counts, highest := map[string]int{}, 1
	for _, h := range s.Hours.Top(math.MaxInt) {
		counts[h.Name], highest = h.Requests, max(highest, h.Requests)
	}
	last := s.To.UTC().Truncate(time.Hour)
	hours := min(int(last.Sub(s.From.UTC().Truncate(time.Hour)).Hours())+1, most)
	if hours < 2 {
		return ""
	}
	row := make([]rune, hours)
	for i := range row {
		n := counts[last.Add(time.Duration(i+1-hours)*time.Hour).Format(Hour)]
		row[i] = ' '
		if n > 0 {
			row[i] = []rune(heights)[(n*8-1)/highest]
		}
	}
	return fmt.Sprintf("%s  the last %d hours, to %s UTC, at most %d requests an hour", string(row), hours, last.Format(Hour), highest)
}

func (t *sumReport) result() (string, any, bool) {
	t.invalid.warn(t.s)
	preferences, row := t.Preferences.Top(top), ""
	if t.terminal {
		row = bars(t.Summary)
	}
	return "summary", summary{
		t.Summary, t.Gates.Top(math.MaxInt), t.Reasons.Top(math.MaxInt), t.Crawlers.Top(math.MaxInt), t.Hosts.Top(top), t.Hosts.Len(), t.Hosts.Estimated,
		t.Rules.Top(top), t.Rules.Len(), t.Rules.Estimated, t.Failures.Top(top),
		preferences, t.Preferences.Len(), t.Preferences.Estimated, row,
	}, false
}
