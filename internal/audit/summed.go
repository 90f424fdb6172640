package audit

import (
	"fmt"
	"math"

	"robotsgate/internal/console"
)

// top is how many hosts, rules, preferences and errors are listed.
const top = 20

// A sumReport summarises the entries.
type sumReport struct {
	*Summary
	s       console.Streams
	invalid invalidLines
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

	Preferences []Named
}

func (t *sumReport) result() (string, any, bool) {
	t.invalid.warn(t.s)
	return "summary", summary{
		t.Summary, t.Gates.Top(math.MaxInt), t.Reasons.Top(math.MaxInt), t.Crawlers.Top(math.MaxInt), t.Hosts.Top(top), t.Hosts.Len(), t.Hosts.Estimated,
		t.Rules.Top(top), t.Rules.Len(), t.Rules.Estimated, t.Failures.Top(top), t.Preferences.Top(top),
	}, false
}
