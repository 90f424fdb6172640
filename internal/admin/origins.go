package admin

import (
	"net/http"
	"net/url"
	"slices"
	"time"

	"robotsgate/policy/robotstxt"
)

// maxLines bounds the lines of a robots.txt on a page. The API has all of it.
const maxLines = 2000

// maxPast bounds the answers of the history on a page. The command history has all of it.
const maxPast = 100

// originView is the data of the page of an origin.
type originView struct {
	known
	Asked  string // the origin of the query
	Failed error  // there is nothing to show
	Stands bool   // there is a robots.txt in force, or an answer in place of it
	Lines  []line
	More   int    // further lines, if positive
	Past   []Past // the newest first
	Older  int    // further answers of the history
	Now    time.Time
}

// originPage serves what is known of an origin, for people.
func (a *admin) originPage(w http.ResponseWriter, r *http.Request) {
	k, code, err := a.robots(r)
	a.renderOrigin(w, r, k, code, err)
}

// refreshPage fetches a robots.txt again, and leads back to the page of its origin.
func (a *admin) refreshPage(w http.ResponseWriter, r *http.Request) {
	if _, code, err := a.refresh(r); err != nil {
		a.renderOrigin(w, r, known{}, code, err)
		return
	}
	http.Redirect(w, r, "/origin?origin="+url.QueryEscape(r.URL.Query().Get("origin")), http.StatusSeeOther)
}

func (a *admin) renderOrigin(w http.ResponseWriter, r *http.Request, k known, code int, err error) {
	if err == nil {
		code = http.StatusOK
	}
	v := originView{known: k, Asked: r.URL.Query().Get("origin"), Failed: err, Stands: k.inForce != nil, Now: time.Now()}
	lines := robotstxt.Lines(k.Body)
	v.More = len(lines) - maxLines
	for i, text := range lines[:min(len(lines), maxLines)] {
		v.Lines = append(v.Lines, line{Number: i + 1, Text: text})
	}
	v.Past = slices.Clone(k.History)
	slices.Reverse(v.Past)
	v.Older = max(len(v.Past)-maxPast, 0)
	v.Past = v.Past[:len(v.Past)-v.Older]
	show(w, code, "origin.html", v)
}
