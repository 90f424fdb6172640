package admin

import (
	"context"
	"net/http"
	"strings"
	"time"

	"robotsgate/policy/canonical"
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
	for _, crawlers := range []bool{false, true} {
		rec, _ := a.Engine.Snapshots().Known(ctx, snapshot.Scope{Origin: origin, Crawlers: crawlers})
		for s := range rec.Answers() {
			if last == nil || s.Fetched.After(last.Fetched) {
				last = s
			}
		}
	}
	return last
}
