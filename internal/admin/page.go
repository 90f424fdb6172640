package admin

import (
	"bytes"
	"embed"
	"html/template"
	"net/http"
	"net/url"
	"strings"

	"robotsgate/policy"
)

//go:embed page
var pageFiles embed.FS

// files are the page's files beside its HTML, with their types.
var files = map[string]string{
	"style.css": "text/css; charset=utf-8",
	"page.js":   "text/javascript; charset=utf-8",
	"icon.svg":  "image/svg+xml",
}

var pageTemplate = template.Must(template.New("page.html").Funcs(words).ParseFS(pageFiles, "page/*.html"))

// view is the data of the templates.
type view struct {
	status
	Proxy string
	Chart chart
	Asked *question // nil: none
	Found *found    // nil: no id was looked up
}

// found is the result of looking up a refusal by its id.
type found struct {
	ID       string
	Refusal  *Refusal // nil: there is none
	Override string   // that allows the request; "" if none does
}

// find looks up the id of a query, if there is one.
func (a *admin) find(q url.Values) *found {
	id := strings.TrimSpace(q.Get("id"))
	if id == "" {
		return nil
	}
	f := &found{ID: id}
	if r, ok := a.Overview.Refusal(id); ok {
		f.Refusal, f.Override = &r, permitting(&r)
	}
	return f
}

// A question is the content of the form, with the answer.
type question struct {
	url.Values
	Error error
	*policy.Explanation
	Excerpt []line // of the robots.txt, around the rule that decided
}

// page serves the status page, with an answer if the form was sent.
func (a *admin) page(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if !q.Has("url") {
		a.render(w, http.StatusOK, "page.html", nil, a.find(q))
		return
	}
	if isCrossSite(r) { // another site may link to the page, but not cause a fetch
		fail(w, http.StatusForbidden, "another site's page has sent this request; open the page, and use its form")
		return
	}
	e, d, code, err := a.decide(r)
	if err == nil {
		e.Group = d.Group.Written() // for people
	}
	a.render(w, code, "page.html", &question{q, err, e, excerpt(d)}, nil)
}

// live serves the parts of the page that change, for its script.
func (a *admin) live(w http.ResponseWriter, _ *http.Request) {
	a.render(w, http.StatusOK, "live.html", nil, nil)
}

// render sends the status page, or a part of it.
func (a *admin) render(w http.ResponseWriter, code int, name string, asked *question, id *found) {
	s := a.status()
	show(w, code, name, view{s, a.Proxy, draw(s.Minutes), asked, id})
}

// show executes a template, and sends the result if that succeeds.
func show(w http.ResponseWriter, code int, name string, data any) {
	var b bytes.Buffer
	if err := pageTemplate.ExecuteTemplate(&b, name, data); err != nil {
		fail(w, http.StatusInternalServerError, err.Error())
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_, _ = b.WriteTo(w) // the client may have disconnected
}

func file(name, kind string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", kind)
		http.ServeFileFS(w, r, pageFiles, "page/"+name)
	}
}
