package cli

import (
	"fmt"
	"math"

	"robotsgate/internal/audit"
)

// A sumReport summarises the records.
type sumReport struct {
	*audit.Summary
	top      int
	s        Streams
	warnings []string
}

func (t *sumReport) Line(l *audit.Line) {
	t.Summary.Line(l)
	const most = 20
	if l.Record == nil && len(t.warnings) < most {
		t.warnings = append(t.warnings, fmt.Sprintf("%s: %v", l.At(), l.Err))
	}
}

// A summary is the result of a sumReport.
type summary struct {
	*audit.Summary
	Reasons   []audit.Named `json:"reasons"`
	Crawlers  []audit.Named `json:"crawlers"`
	Hosts     []audit.Named `json:"hosts"`
	Names     int           `json:"hosts_total"`
	Estimated bool          `json:"hosts_estimated"`
	Failures  []audit.Named `json:"failures"`
}

func (t *sumReport) result() (string, any, bool) {
	for _, w := range t.warnings {
		t.s.warn("%s", w)
	}
	return "summary", summary{
		t.Summary, t.Reasons.Top(math.MaxInt), t.Crawlers.Top(math.MaxInt), t.Hosts.Top(t.top), t.Hosts.Len(), t.Hosts.Estimated,
		t.Failures.Top(t.top),
	}, false
}
