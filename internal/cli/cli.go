// Package cli has the commands, most of them in one file; commands.go lists them. What is more than a command has a
// package of its own, such as doctor. The folder help has the help of each command, output the templates of reports.
package cli

// Where to change what.
//
//	a command:
//		a file here, a row in commands.go, its help in help, and a story in
//		testdata/script
//	what check and tags print for people:
//		a template in output
//	what audit prints for people:
//		a template in internal/audit/reports
//	which requests have a line on the terminal:
//		serve.go

import (
	"cmp"
	"embed"
	"io"
	"strings"
	"text/template"

	"robotsgate/internal/console"
	"robotsgate/internal/gate"
)

// Configured is the option of every command that depends on a configuration.
type Configured struct {
	Config string `short:"c" placeholder:"FILE" help:"Configuration file; without one the defaults hold."`
}

func (c Configured) load() (*gate.Config, error) {
	if c.Config == "" {
		return gate.DefaultConfig(), nil
	}
	return gate.LoadConfig(c.Config)
}

// Pacing is the option of serve and run that precedes pace.crawl_delay.
type Pacing struct {
	CrawlDelay gate.CrawlDelay `enum:",obey,announce" default:"" placeholder:"obey" help:"obey: keep the distance that Crawl-delay asks for; announce: only report it. Precedes FILE."`
}

func (p Pacing) apply(c *gate.Config) { c.Pace.CrawlDelay = cmp.Or(p.CrawlDelay, c.Pace.CrawlDelay) }

// outputs has a template for each report that commands print for people.
//
//go:embed output/*.txt
var outputs embed.FS

var templates = console.Templates(outputs, "output/*.txt", template.FuncMap{
	"fish": strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace, // for a text in single quotes
})

// printReport prints a report with the template of a name.
func printReport(w io.Writer, name string, report any) error {
	return templates.ExecuteTemplate(w, name+".txt", report)
}
