package admin

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"robotsgate/policy"
)

// explain decides about the url that a query names, for its crawler by name or by
// agent, with its product tokens or those in token. Beside an error it returns the
// status to answer with.
func (a *admin) explain(ctx context.Context, q url.Values) (policy.Explanation, int, error) {
	target, err := policy.ReadURL(q.Get("url"))
	if err != nil {
		return policy.Explanation{}, http.StatusBadRequest, fmt.Errorf("url: %w", err)
	}
	// token= names nobody: the agent's own token stays in force.
	tokens := slices.DeleteFunc(q["token"], func(token string) bool { return token == "" })
	ask := a.request(target, q.Get("agent"), tokens)
	if name := q.Get("crawler"); name != "" {
		k := a.Engine.Crawlers().Named(name)
		if k == nil {
			return policy.Explanation{}, http.StatusBadRequest, fmt.Errorf("crawler: none is called %q", name)
		}
		ask.Crawler = as(k, tokens)
	}
	d, err := a.Engine.Decide(ctx, ask)
	if err != nil {
		return policy.Explanation{}, http.StatusBadGateway, err
	}
	e := d.Explain(target.String())
	e.Lost = d.Lost(target)
	return e, http.StatusOK, nil
}

// as returns the crawler with these product tokens, if there are any.
func as(k *policy.Crawler, tokens []string) *policy.Crawler {
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
