package console

import (
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
	"usage":     usage.Detail.String,
	"place":     usage.Where,
})

// Templates returns the templates of reports in a folder, which have more functions. It panics if they are wrong.
func Templates(folder fs.FS, pattern string, more template.FuncMap) *template.Template {
	return template.Must(template.Must(reports.Clone()).Funcs(more).ParseFS(folder, pattern))
}
