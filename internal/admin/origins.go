package admin

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"robotsgate/policy/canonical"
	"robotsgate/policy/robotstxt"
	"robotsgate/policy/snapshot"
)

// maxOrigins is about how many origins a page of the list has.
const maxOrigins = 50

// originList is the data of the list of origins.
type originList struct {
	Search string // that is in their names
	From   string // where the page begins; empty: at the beginning
	Rows   []originRow
	Next   string // where the next page begins; empty: this one is the last
	Part   bool   // not all origins were searched, and few were found
	Now    time.Time
}

type originRow struct {
	Origin string
	Answer *snapshot.Snapshot // the last; nil: it is not kept any more
}

// originList serves a page of the origins that have a text in their name.
func (a *admin) originList(w http.ResponseWriter, r *http.Request) {
	v := originList{Search: searchText(r.URL.Query().Get("search")), From: r.URL.Query().Get("from"), Now: time.Now()}
	origins, next, err := a.Engine.Snapshots().Origins(r.Context(), v.Search, v.From, maxOrigins)
	if err != nil {
		fail(w, http.StatusBadGateway, err.Error())
		return
	}
	for _, origin := range origins {
		v.Rows = append(v.Rows, originRow{origin, a.lastAnswer(r.Context(), origin)})
	}
	v.Next, v.Part = next, next != "" && len(origins) < maxOrigins
	show(w, http.StatusOK, "origins.html", v)
}

// searchText returns the text to search for in canonical names of origins. A URL stands for its
// origin, and a host name with other letters than those of ASCII for its name in DNS.
func searchText(s string) string {
	s = strings.ToLower(strings.TrimSpace(s))
	if t, err := canonical.ReadURL(s); err == nil {
		return t.Origin()
	}
	if t, err := canonical.ParseURL("http://" + s); err == nil && strings.Contains(t.Host, "xn--") {
		return t.Host
	}
	return s
}

// lastAnswer returns the last answer of an origin, to whichever client; nil if there is none.
func (a *admin) lastAnswer(ctx context.Context, origin string) (last *snapshot.Snapshot) {
	for _, q := range a.Engine.Askers(origin) {
		set, _ := a.Engine.Snapshots().Known(ctx, q)
		if s := set.Last; s != nil && (last == nil || s.Fetched.After(last.Fetched)) {
			last = s
		}
	}
	return last
}

// maxLines bounds the lines of a robots.txt on a page. The API has all of it.
const maxLines = 2000

// originView is the data of the page of an origin.
type originView struct {
	known
	Asked  string // the origin of the query
	Failed error  // there is nothing to show
	Stands bool   // there is a robots.txt in force, or an answer in place of it
	Lines  []line
	More   int // further lines, if positive
	Past   []pastRow
	Older  int // further answers of the history
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
	v.Past, v.Older = pastRows(k.History, a.Body)
	show(w, code, "origin.html", v)
}
