package admin

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"robotsgate/policy"
)

// explain decides about the URL of a query, for the crawler with a name or a User-Agent. The
// query's product tokens, if there are any, replace the crawler's. With an error it returns
// the status of the response.
func (a *admin) explain(ctx context.Context, q url.Values) (policy.Explanation, int, error) {
	target, err := policy.ReadURL(q.Get("url"))
	if err != nil {
		return policy.Explanation{}, http.StatusBadRequest, fmt.Errorf("url: %w", err)
	}
	// An empty token, as the form sends it, replaces nothing.
	tokens := slices.DeleteFunc(q["token"], func(token string) bool { return token == "" })
	ask := a.request(target, q.Get("agent"), tokens)
	if name := q.Get("crawler"); name != "" {
		k := a.Engine.Crawlers().Named(name)
		if k == nil {
			return policy.Explanation{}, http.StatusBadRequest, fmt.Errorf("crawler: no crawler is called %q", name)
		}
		ask.Crawler = withTokens(k, tokens)
	}
	d, err := a.Engine.Decide(ctx, ask)
	if err != nil {
		return policy.Explanation{}, http.StatusBadGateway, err
	}
	e := d.Explain(target.String())
	e.Lost = d.Lost(target)
	return e, http.StatusOK, nil
}

// withTokens returns the crawler with these product tokens, if there are any.
func withTokens(k *policy.Crawler, tokens []string) *policy.Crawler {
	if len(tokens) == 0 {
		return k
	}
	with := *k
	with.Tokens = tokens
	return &with
}

// decision answers as robotsgate check --json does.
func (a *admin) decision(w http.ResponseWriter, r *http.Request) {
	e, status, err := a.explain(r.Context(), r.URL.Query())
	if err != nil {
		fail(w, status, err.Error())
		return
	}
	answer(w, e)
}
