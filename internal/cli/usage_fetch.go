package cli

import (
	"context"
	"fmt"
	"net/http"

	"robotsgate/htmlmeta"
	"robotsgate/internal/console"
	"robotsgate/internal/gate"
	"robotsgate/policy"
	"robotsgate/policy/canonical"
)

// fetched asks the origin of a URL for its robots.txt and its tdmrep.json and, if the crawler may fetch it, for the page.
// It notes what the reading lacks.
func (a *Asker) fetched(ctx context.Context, s console.Streams, cfg *gate.Config, crawler *policy.Crawler, url string) (r reading, err error) {
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
	target, err := canonical.ReadURL(url)
	if err != nil {
		return r, fmt.Errorf("%s: %w", url, err)
	}
	d, err := engine.Decide(ctx, policy.Request{Target: target, Crawler: crawler, UserAgent: a.Agent})
	if err != nil {
		return r, fmt.Errorf("%s: %w", url, explained(target, err))
	}
	r.Path, r.Tokens, r.Decision = target.Path, d.Tokens, d
	switch {
	case !d.Allow && d.Reason == policy.IsUnreachable:
		r.Failed = fmt.Errorf("the page was not fetched: robots.txt is unreachable: %s", d.Robots.Snapshot.Error)
	case d.Allow:
		ctx, cancel := context.WithTimeout(ctx, cfg.Egress.ResponseHeaderTimeout+cfg.Tags.HeadTimeout)
		defer cancel()
		if err := r.fetchPage(ctx, upstream, target, a.Agent, int(cfg.Tags.MaxHeadBytes)); err != nil {
			r.Failed = fmt.Errorf("%s: the page was not fetched: %w", url, err)
		}
	}
	if !d.Allow && r.Failed == nil {
		s.Note("the page was not fetched: robots.txt denies it")
	}
	if r.Status >= 300 {
		s.Note("the response has status %d, so it may not be the page", r.Status)
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
