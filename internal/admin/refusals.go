package admin

import (
	"net/http"

	"robotsgate/internal/overview"
)

// maxRefusals bounds the refusals on their page.
const maxRefusals = 100

// refusalList is the data of the page of refusals.
type refusalList struct {
	Crawler    string // that sent the requests; empty: any
	Refusals   []overview.Refusal
	Most, Kept int
}

// refusalList serves the latest refusals of a crawler, or of all.
func (a *admin) refusalList(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Query().Get("crawler")
	show(w, http.StatusOK, "refusals.html", refusalList{name, a.Overview.Refusals(name, maxRefusals), maxRefusals, overview.MaxRefusals})
}
