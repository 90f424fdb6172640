package admin

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"robotsgate/policy"
	"robotsgate/policy/canonical"
)

// explain answers the API as robotsgate check --json does. With an error it returns the status
// of the response.
func (a *admin) explain(r *http.Request) (*policy.Explanation, int, error) {
	e, _, code, err := a.decide(r)
	return e, code, err
}

// A line is one of a robots.txt.
type line struct {
	Number  int
	Text    string
	Decides bool
}

// excerpt returns the rule that decided with the lines around it.
func excerpt(d *policy.Decision) (lines []line) {
	if d == nil || d.Reason != policy.ByRule {
		return nil
	}
	for _, l := range d.Robots.File.Around(d.Rule.Line, 2) {
		lines = append(lines, line{l.Number, l.Text, l.Number == d.Rule.Line})
	}
	return lines
}

// decide decides about the URL of a query, for the crawler with a name or a User-Agent. The
// query's product tokens, if there are any, replace the crawler's. With an error it returns
// the status of the response.
func (a *admin) decide(r *http.Request) (*policy.Explanation, *policy.Decision, int, error) {
	q := r.URL.Query()
	target, err := canonical.ReadURL(q.Get("url"))
	if err != nil {
		return nil, nil, http.StatusBadRequest, fmt.Errorf("url: %w", err)
	}
	ask := a.request(target, q.Get("agent"))
	if name := q.Get("crawler"); name != "" {
		if ask.Crawler = a.Engine.Crawlers().Named(name); ask.Crawler == nil {
			return nil, nil, http.StatusBadRequest, fmt.Errorf("crawler: no crawler is called %q", name)
		}
	}
	// An empty token, as the form sends it, replaces nothing.
	tokens := slices.DeleteFunc(q["token"], func(token string) bool { return token == "" })
	switch all := a.Engine.Crawlers(); {
	case len(tokens) > 0:
		ask.Crawler = ask.Crawler.Obeying(tokens)
	case all.RefuseUnknown && ask.Crawler == all.Default && q.Get("crawler") == "": // as from robotsgate check
		return nil, nil, http.StatusBadRequest, fmt.Errorf("the gate refuses this client: it matches no crawler by its User-Agent alone; name its crawler: %s", strings.Join(all.Names(), ", "))
	}
	d, err := a.Engine.Decide(r.Context(), ask)
	if err != nil {
		return nil, nil, http.StatusBadGateway, err
	}
	e := d.Explain(target.String())
	e.Override = d.Permit(target, http.MethodGet)
	return &e, d, http.StatusOK, nil
}
