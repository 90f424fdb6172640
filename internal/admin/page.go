package admin

import (
	"bytes"
	"embed"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"

	"robotsgate/policy"
)

//go:embed page
var pageFiles embed.FS

// files are what the page consists of beside its HTML, with their types.
var files = map[string]string{
	"style.css": "text/css; charset=utf-8",
	"page.js":   "text/javascript; charset=utf-8",
	"icon.svg":  "image/svg+xml",
}

var pageTemplate = template.Must(template.New("page.html").Funcs(words).ParseFS(pageFiles, "page/page.html", "page/live.html"))

// view is what the templates show.
type view struct {
	status
	Proxy string
	Chart chart
	Asked *asked // nil: nothing
}

// asked is what somebody wants to have explained, and the answer.
type asked struct {
	URL, Crawler, Agent, Token string

	Error string
	*policy.Explanation
}

func (a *admin) view() view {
	s := a.status()
	return view{status: s, Proxy: a.Proxy, Chart: draw(s.Minutes)}
}

// page shows everything at once, with an answer if it is asked for one.
func (a *admin) page(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if !q.Has("url") {
		a.render(w, http.StatusOK, "page.html", a.view())
		return
	}
	if foreign(r) { // a link to the page is fine, but not one that makes it work
		fail(w, http.StatusForbidden, "another site's page has sent this request; open the page, and ask there")
		return
	}
	answer, code := a.answerTo(r, q)
	v := a.view()
	v.Asked = answer
	a.render(w, code, "page.html", v)
}

func (a *admin) answerTo(r *http.Request, q url.Values) (*asked, int) {
	to := &asked{URL: q.Get("url"), Crawler: q.Get("crawler"), Agent: q.Get("agent"), Token: q.Get("token")}
	e, code, err := a.explain(r.Context(), q)
	if err != nil {
		to.Error = err.Error()
	} else {
		to.Explanation = &e
	}
	return to, code
}

// live is the part of the page that changes, for its script.
func (a *admin) live(w http.ResponseWriter, _ *http.Request) {
	a.render(w, http.StatusOK, "live.html", a.view())
}

// render makes the whole page before it sends any of it.
func (a *admin) render(w http.ResponseWriter, code int, name string, v view) {
	var b bytes.Buffer
	if err := pageTemplate.ExecuteTemplate(&b, name, v); err != nil {
		fail(w, http.StatusInternalServerError, err.Error())
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_, _ = b.WriteTo(w) // the client left
}

func file(name, kind string) http.HandlerFunc {
	data, err := fs.ReadFile(pageFiles, "page/"+name)
	if err != nil {
		panic(err) // it is compiled in
	}
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write(data) // the client left
	}
}

// overview answers what the page shows.
func (a *admin) overview(w http.ResponseWriter, _ *http.Request) { answer(w, a.status()) }
