package cli

import (
	"context"
	"fmt"
	"net/http"

	"robotsgate/htmlmeta"
	"robotsgate/internal/gate"
	"robotsgate/policy"
	"robotsgate/policy/canonical"
)

// fetched asks the origin for its robots.txt and its tdmrep.json and, if the crawler may fetch it, for the page.
func (u *Usage) fetched(ctx context.Context, cfg *gate.Config, crawler *policy.Crawler) (r reading, err error) {
	upstream, err := unguarded(cfg)
	if err != nil {
		return r, err
	}
	defer upstream.Close()
	c := engineConfig(cfg, upstream)
	c.Usage = policy.Usage{TDMRep: true}
	engine, err := policy.New(c)
	if err != nil {
		return r, err
	}
	defer engine.Close()
	target, err := canonical.ReadURL(u.URL)
	if err != nil {
		return r, fmt.Errorf("%s: %w", u.URL, err)
	}
	d, err := engine.Decide(ctx, policy.Request{Target: target, Crawler: crawler, UserAgent: u.Agent})
	if err != nil {
		return r, fmt.Errorf("%s: %w", u.URL, explained(target, err))
	}
	r.Path, r.Tokens, r.Decision = target.Path, d.Tokens, d
	switch {
	case !d.Allow && d.Reason == policy.IsUnreachable:
		r.Failed = fmt.Errorf("the page was not fetched: robots.txt is unreachable: %s", d.Robots.Snapshot.Error)
	case d.Allow:
		ctx, cancel := context.WithTimeout(ctx, cfg.Egress.ResponseHeaderTimeout+cfg.Tags.HeadTimeout)
		defer cancel()
		if err := r.fetchPage(ctx, upstream, target, u.Agent, int(cfg.Tags.MaxHeadBytes)); err != nil {
			r.Failed = fmt.Errorf("%s: the page was not fetched: %w", u.URL, err)
		}
	}
	return r, nil
}

// fetchPage requests the page, and reads its head.
func (r *reading) fetchPage(ctx context.Context, transport http.RoundTripper, target canonical.Target, agent string, maxHead int) error {
	// An empty value keeps net/http from adding its own.
	req := (&http.Request{Method: http.MethodGet, URL: target.URL(), Host: target.Host, Header: http.Header{"User-Agent": {agent}}}).WithContext(ctx)
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	r.Header, r.Status = resp.Header, resp.StatusCode
	switch resp.StatusCode {
	case http.StatusNoContent, http.StatusPartialContent, http.StatusNotModified: // the gate reads no head of these
		r.Skipped = "status"
		return nil
	}
	// If there is none, the page's beginning decides.
	resp.Header["Content-Type"] = []string{htmlmeta.ContentType(resp.Header["Content-Type"])}
	return r.readPage(resp.Body, maxHead)
}

// remarks say what a fetched reading lacks. Advice is for a response that may not be the page.
func (r *reading) remarks(advice string) (all []string) {
	if d := r.Decision; d != nil && !d.Allow && r.Failed == nil {
		all = append(all, "the page was not fetched: robots.txt denies it")
	}
	switch location := r.Header.Get("Location"); {
	case location != "":
		all = append(all, fmt.Sprintf("the response redirects to %s; ask for the preferences of that URL too", location))
	case r.Status >= 400:
		all = append(all, fmt.Sprintf("the response has status %d, so it may not be the page%s", r.Status, advice))
	}
	return all
}
