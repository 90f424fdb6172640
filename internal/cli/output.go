package cli

import (
	"embed"
	"io"
	"strings"
	"text/template"

	"robotsgate/internal/console"
)

// outputs has a template for each report that commands print for people.
//
//go:embed output/*.txt
var outputs embed.FS

var templates = console.Templates(outputs, "output/*.txt", template.FuncMap{

	"moreFindings": moreFindings,
	"roff":         roff,
	"fish":         strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace, // for a text in single quotes
})

// printReport prints a report with the template of a name.
func printReport(w io.Writer, name string, report any) error {
	return templates.ExecuteTemplate(w, name+".txt", report)
}
