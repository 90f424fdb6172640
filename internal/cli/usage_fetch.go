package cli

import (
	"context"
	"fmt"
	"net/http"

	"robotsgate/htmlmeta"
	"robotsgate/internal/gate"
	"robotsgate/internal/questions"
	"robotsgate/policy"
	"robotsgate/policy/canonical"
	"robotsgate/proxy"
)

// fetched asks the origin for what there is about the URL.
func (u *Usage) fetched(ctx context.Context, cfg *gate.Config, crawler *policy.Crawler) (r questions.Reading, err error) {
	upstream, err := unguarded(cfg)
	if err != nil {
		return r, err
	}
	defer upstream.Close()
	f, err := newUsageFetcher(cfg, upstream)
	if err != nil {
		return r, err
	}
	defer f.engine.Close()
	return f.fetch(ctx, u.URL, crawler, u.Agent)
}

// A usageFetcher fetches what there is about URLs.
type usageFetcher struct {
	cfg      *gate.Config
	upstream *proxy.Transport
	engine   *policy.Engine
}

// newUsageFetcher returns a fetcher. Overrides do not count: they are the operator's, not the publisher's.
func newUsageFetcher(cfg *gate.Config, upstream *proxy.Transport) (*usageFetcher, error) {
	c := engineConfig(cfg, upstream)
	c.Overrides, c.Usage = nil, policy.Usage{TDMRep: true}
	engine, err := policy.New(c)
	return &usageFetcher{cfg, upstream, engine}, err
}

// fetch asks the origin for its robots.txt and its tdmrep.json and, if the crawler may fetch it, for the page.
func (f *usageFetcher) fetch(ctx context.Context, url string, crawler *policy.Crawler, agent string) (r questions.Reading, err error) {
	target, err := canonical.ReadURL(url)
	if err != nil {
		return r, fmt.Errorf("%s: %w", url, err)
	}
	d, err := f.engine.Decide(ctx, policy.Request{Target: target, Crawler: crawler, UserAgent: agent})
	if err != nil {
		return r, fmt.Errorf("%s: %w", url, explained(target, err))
	}
	r.Path, r.Tokens, r.Decision = target.Path, d.Tokens, d
	switch {
	case !d.Allow && d.Reason == policy.IsUnreachable:
		r.Failed = fmt.Errorf("the page was not fetched: robots.txt is unreachable: %s", d.Robots.Snapshot.Error)
	case d.Allow:
		if err := f.fetchPage(ctx, target, agent, &r); err != nil {
			r.Failed = fmt.Errorf("%s: the page was not fetched: %w", url, err)
		}
	}
	return r, nil
}

// remarks say what a reading of fetch lacks. Advice is for a response that may not be the page.
func remarks(r *questions.Reading, advice string) (all []string) {
	if !r.Decision.Allow && r.Failed == nil {
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

// fetchPage requests the page, and reads its head.
func (f *usageFetcher) fetchPage(ctx context.Context, target canonical.Target, agent string, r *questions.Reading) error {
	ctx, cancel := context.WithTimeout(ctx, f.cfg.Egress.ResponseHeaderTimeout+f.cfg.Tags.HeadTimeout)
	defer cancel()
	// An empty value keeps net/http from adding its own.
	req := (&http.Request{Method: http.MethodGet, URL: target.URL(), Host: target.Host, Header: http.Header{"User-Agent": {agent}}}).WithContext(ctx)
	resp, err := f.upstream.RoundTrip(req)
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
	return r.ReadPage(resp.Body, int(f.cfg.Tags.MaxHeadBytes))
}
