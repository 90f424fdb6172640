package audit

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"strings"

	"robotsgate/internal/console"
	"robotsgate/internal/logtext"
)

// outputs has a template for each report for people.
//
//go:embed reports/*.txt
var outputs embed.FS

var templates = console.Templates(outputs, "reports/*.txt", template.FuncMap{
	"table": table,
})

// printReport prints a report with the template of a name.
func printReport(w io.Writer, name string, report any) error {
	return templates.ExecuteTemplate(w, name+".txt", report)
}

// table returns the most frequent names of a tally with their counts, after an empty line; nothing if there are none.
func table(title string, t *Tally, most int) string {
	rows := t.Top(most)
	switch {
	case len(rows) == 0:
		return ""
	case t.Estimated:
		title += fmt.Sprintf(" (the first %d; of more than can be counted, so these are estimates)", len(rows))
	case t.Len() > len(rows):
		title += fmt.Sprintf(" (the first %d of %d)", len(rows), t.Len())
	}
	const widest = 60
	width := len(title)
	for _, r := range rows {
		width = max(width, min(2+len(logtext.Printable(r.Name)), widest))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n%-*s %9s %9s %9s %9s %9s\n", width, title, "requests", "allowed", "denied", "reported", "refused")
	for _, r := range rows {
		fmt.Fprintf(&b, "%-*s %9d %9d %9d %9d %9d\n", width, "  "+logtext.Printable(r.Name), r.Sum(), r.Allowed, r.Denied, r.Reported, r.Refused)
	}
	return b.String()
}
