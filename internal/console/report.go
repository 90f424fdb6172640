package console

import (
	"fmt"
	"io/fs"
	"text/template"

	"robotsgate/internal/logtext"
	"robotsgate/policy/usage"
)

// reports has the functions of all templates of reports. Text from the network must go through printable there.
var reports = template.New("").Funcs(template.FuncMap{
	"printable": logtext.Printable,
	"plural":    Plural,
	"utc":       UTC,
	"usage":     Usage,
	"place":     place,
})

// Templates returns the templates of reports in a folder, which have more functions. It panics if they are wrong.
func Templates(folder fs.FS, pattern string, more template.FuncMap) *template.Template {
	return template.Must(template.Must(reports.Clone()).Funcs(more).ParseFS(folder, pattern))
}

// Usage returns a preference in words: "train-ai=n from content-usage, line 4 of robots.txt".
func Usage(p usage.Detail) string {
	return p.Use + "=" + p.Value + " from " + string(p.Source) + ", " + place(p.In, p.Line)
}

// place returns where a preference or a licence was read, in words.
func place(in usage.Place, line int) string {
	switch {
	case line > 0:
		return fmt.Sprintf("line %d of robots.txt", line)
	case in == usage.InRobots:
		return "in robots.txt"
	case in == usage.InHeader:
		return "in the response's header"
	case in == usage.InMeta:
		return "in the page's head"
	case in == usage.InWellKnown:
		return "in tdmrep.json"
	}
	return string(in)
}
