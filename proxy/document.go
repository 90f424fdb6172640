package proxy

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"time"

	"robotsgate/internal/escape"
	"robotsgate/policy"
)

// document is the problem as JSON.
type document struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	policy.Evidence
	ID string `json:"id"`
}

func (p *problem) document(x *exchange) document {
	doc := document{Type: "about:blank", Title: p.title, Status: p.status, Detail: p.detail, Evidence: policy.Evidence{URL: x.URL}, ID: x.ID}
	if kind := cmp.Or(p.kind, p.fault); kind != "" {
		doc.Type = "urn:robotsgate:" + kind
	}
	if doc.Title == "" {
		doc.Title = http.StatusText(p.status)
	}
	if x.Decision != nil {
		doc.Evidence = x.Decision.Evidence(x.URL)
	}
	return doc
}

// body returns the problem in the form that the client prefers.
func (p *problem) body(r *http.Request, x *exchange) (body []byte, contentType string) {
	doc := p.document(x)
	var b bytes.Buffer
	switch negotiate(r.Header["Accept"]) {
	case "text/html":
		if err := page.Execute(&b, doc.printable()); err == nil {
			return b.Bytes(), "text/html; charset=utf-8"
		}
	case "text/plain":
		doc.printable().text(&b)
		return b.Bytes(), "text/plain; charset=utf-8"
	}
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ") // a person with curl reads it too
	if err := enc.Encode(doc); err != nil {
		return nil, "application/problem+json" // a string and a finite number can be encoded
	}
	return escape.JSON(b.Bytes()), "application/problem+json"
}

// printable returns the document with every text escaped for display.
func (d document) printable() *document {
	d.Detail, d.URL, d.Note = escape.Printable(d.Detail), escape.Printable(d.URL), escape.Printable(d.Note)
	d.ReadAs, d.Title, d.Group = escape.Printable(d.ReadAs), escape.Printable(d.Title), escape.Printable(d.Group)
	if d.Rule != nil {
		d.Rule = &policy.RuleEvidence{Line: d.Rule.Line, Text: escape.Printable(d.Rule.Text)}
	}
	return &d
}

// attempted returns the verb for the time of a robots.txt: without a response it was tried only.
func attempted(r *policy.RobotsEvidence) string {
	if r.Status == 0 {
		return "tried"
	}
	return "fetched"
}

func (d *document) text(w io.Writer) {
	fmt.Fprintf(w, "%d %s\n\n%s\n\nURL: %s\n", d.Status, d.Title, d.Detail, d.URL)
	if d.ReadAs != "" {
		fmt.Fprintf(w, "Read as: %s\n", d.ReadAs)
	}
	if d.Rule != nil {
		fmt.Fprintf(w, "Rule: line %d: %s\n", d.Rule.Line, d.Rule.Text)
	}
	if d.Reason != "" {
		fmt.Fprintf(w, "Reason: %s\n", d.Reason)
	}
	if d.Note != "" {
		fmt.Fprintf(w, "Note: %s\n", d.Note)
	}
	if d.Group != "" {
		fmt.Fprintf(w, "Group: %s\n", d.Group)
	}
	if d.ProductToken != "" {
		fmt.Fprintf(w, "Product token: %s\n", d.ProductToken)
	}
	if d.Robots != nil {
		r := d.Robots
		fmt.Fprintf(w, "robots.txt: %s, %s, %s %s, %d s ago\n", r.URL, r.State, attempted(r), r.Fetched.Format(time.RFC3339), r.Age)
		if r.Status != 0 {
			fmt.Fprintf(w, "Its status: %d\n", r.Status)
		}
		if r.SHA256 != "" {
			fmt.Fprintf(w, "Its SHA-256: %s\n", r.SHA256)
		}
	}
	if d.CrawlDelay != nil {
		fmt.Fprintf(w, "Crawl-delay: %v s\n", *d.CrawlDelay)
	}
	fmt.Fprintf(w, "Id: %s\n", d.ID)
}

var page = template.Must(template.New("problem").Funcs(template.FuncMap{"attempted": attempted}).Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="robots" content="noindex"><meta name="viewport" content="width=device-width">
<title>{{.Status}} {{.Title}}</title>
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:42em;margin:3em auto;padding:0 1em}dt{font-weight:bold}dd{margin:0 0 .5em;overflow-wrap:anywhere}</style>
</head><body><h1>{{.Status}} {{.Title}}</h1><p>{{.Detail}}</p><dl>
<dt>URL</dt><dd>{{.URL}}</dd>
{{with .ReadAs}}<dt>Read as</dt><dd>{{.}}</dd>{{end}}
{{with .Rule}}<dt>Rule</dt><dd>line {{.Line}}: <code>{{.Text}}</code></dd>{{end}}
{{with .Reason}}<dt>Reason</dt><dd>{{.}}</dd>{{end}}
{{with .Note}}<dt>Note</dt><dd>{{.}}</dd>{{end}}
{{with .Group}}<dt>Group</dt><dd>{{.}}</dd>{{end}}
{{with .ProductToken}}<dt>Product token</dt><dd>{{.}}</dd>{{end}}
{{with .Robots}}<dt>robots.txt</dt><dd>{{.URL}} ({{.State}}, {{attempted .}} {{.Fetched}}, {{.Age}} s ago{{with .Status}}, status {{.}}{{end}}{{with .SHA256}}, SHA-256 {{.}}{{end}})</dd>{{end}}
{{with .CrawlDelay}}<dt>Crawl-delay</dt><dd>{{.}} s</dd>{{end}}
<dt>Id</dt><dd>{{.ID}}</dd></dl><p>Answered by robotsgate, the proxy between the crawler and the web.</p></body></html>
`))
