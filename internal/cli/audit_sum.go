package cli

import (
	"fmt"
	"io"
	"math"

	"robotsgate/internal/audit"
	"robotsgate/internal/escape"
)

// A sumReport summarises the records.
type sumReport struct {
	*audit.Summary
	top  int
	s    Streams
	said int
}

func (t *sumReport) Line(l *audit.Line) {
	t.Summary.Line(l)
	const most = 20
	if l.Record == nil && t.said < most {
		t.said++
		t.s.warn("%s: %v", l.At(), l.Err)
	}
}

func (t *sumReport) end() bool { return false }

func (t *sumReport) json() (string, any) {
	return "summary", struct {
		*audit.Summary
		Reasons   []audit.Named `json:"reasons"`
		Crawlers  []audit.Named `json:"crawlers"`
		Hosts     []audit.Named `json:"hosts"`
		Names     int           `json:"hosts_total"`
		Estimated bool          `json:"hosts_estimated"`
		Failures  []audit.Named `json:"failures"`
	}{
		t.Summary, t.Reasons.Top(math.MaxInt), t.Crawlers.Top(math.MaxInt), t.Hosts.Top(t.top), t.Hosts.Len(), t.Hosts.Estimated,
		t.Failures.Top(t.top),
	}
}

func (t *sumReport) print(w io.Writer) {
	if t.Requests > 0 {
		fmt.Fprintf(w, "%s to %s UTC\n", t.From.UTC().Format(utc), t.To.UTC().Format(utc))
	}
	fmt.Fprintf(w, "%s: %d allowed, %d denied, %d would be denied (report mode), %d without a decision\n",
		plural(t.Requests, "request"), t.Allowed, t.Denied, t.Reported, t.Undecided)
	fmt.Fprintf(w, "%s with an error, %d bytes of responses\n", plural(t.Errors, "request"), t.Bytes)
	if t.Lost > 0 {
		fmt.Fprintf(w, "%s could not be written at the time\n", plural(t.Lost, "record"))
	}
	if t.NoRecord > 0 {
		fmt.Fprintf(w, "%s that are no records\n", plural(t.NoRecord, "line"))
	}
	table(w, "by reason", t.Reasons.Top(math.MaxInt))
	table(w, "by crawler", t.Crawlers.Top(math.MaxInt))
	hosts, all := t.Hosts.Top(t.top), t.Hosts.Len()
	title := "by host"
	switch {
	case t.Hosts.Estimated:
		title += fmt.Sprintf(" (the first %d; of more than can be counted, so these are estimates)", len(hosts))
	case all > len(hosts):
		title += fmt.Sprintf(" (the first %d of %d)", len(hosts), all)
	}
	table(w, title, hosts)
	table(w, "by error", t.Failures.Top(t.top))
}

// table prints counts by name.
func table(w io.Writer, title string, rows []audit.Named) {
	if len(rows) == 0 {
		return
	}
	const widest = 60
	width := len(title)
	for _, r := range rows {
		width = max(width, min(2+len(escape.Printable(r.Name)), widest))
	}
	fmt.Fprintf(w, "\n%-*s %9s %9s %9s %9s\n", width, title, "requests", "allowed", "denied", "reported")
	for _, r := range rows {
		fmt.Fprintf(w, "%-*s %9d %9d %9d %9d\n", width, "  "+escape.Printable(r.Name), r.Requests, r.Allowed, r.Denied, r.Reported)
	}
}
