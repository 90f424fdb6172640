package auditreport

import (
	"fmt"
	"math"

	"robotsgate/internal/audit"
	"robotsgate/internal/console"
)

// A sumReport summarises the entries.
type sumReport struct {
	*audit.Summary
	top     int
	s       console.Streams
	invalid invalidLines
}

func (t *sumReport) Line(l *audit.Line) {
	t.Summary.Line(l)
	t.invalid.add(l)
}

// invalidLines has a warning for each of the first lines that are no entries.
type invalidLines []string

func (i *invalidLines) add(l *audit.Line) {
	const most = 20
	if l.Entry == nil && len(*i) < most {
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
	*audit.Summary
	Gates     []audit.Named `json:"gates"`
	Reasons   []audit.Named `json:"reasons"`
	Crawlers  []audit.Named `json:"crawlers"`
	Hosts     []audit.Named `json:"hosts"`
	Names     int           `json:"hosts_total"`
	Estimated bool          `json:"hosts_estimated"`
	Rules     []audit.Named `json:"rules"`
	RuleCount int           `json:"rules_total"`
	Guessed   bool          `json:"rules_estimated"`
	Failures  []audit.Named `json:"failures"`

	Preferences []audit.Stated `json:"preferences"`
	Stated      int            `json:"preferences_total"`
	AtLeast     bool           `json:"preferences_estimated"`
}

func (t *sumReport) result() (string, any, bool) {
	t.invalid.warn(t.s)
	preferences := t.Preferences.Top(t.top)
	return "summary", summary{
		t.Summary, t.Gates.Top(math.MaxInt), t.Reasons.Top(math.MaxInt), t.Crawlers.Top(math.MaxInt), t.Hosts.Top(t.top), t.Hosts.Len(), t.Hosts.Estimated,
		t.Rules.Top(t.top), t.Rules.Len(), t.Rules.Estimated, t.Failures.Top(t.top),
		preferences, t.Preferences.Len(), t.Preferences.Estimated,
	}, false
}
