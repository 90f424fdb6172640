package cli

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"

	"robotsgate/htmlmeta"
	"robotsgate/internal/console"
	"robotsgate/internal/gate"
	"robotsgate/internal/questions"
	"robotsgate/policy"
	"robotsgate/policy/canonical"
	"robotsgate/proxy"
)

// fetched asks the origin for its robots.txt and its tdmrep.json and, if the crawler may fetch it, for
// the page.
func (u *Usage) fetched(ctx context.Context, s console.Streams, cfg *gate.Config, crawler *policy.Crawler) (r questions.Reading, err error) {
	target, err := canonical.ReadURL(u.URL)
	if err != nil {
		return r, fmt.Errorf("%s: %w", u.URL, err)
	}
	upstream, err := unguarded(cfg)
	if err != nil {
		return r, err
	}
	defer upstream.Close()
	c := gate.EngineConfig(cfg, upstream, nil, slog.New(slog.DiscardHandler), nil)
	c.Agent, c.Usage = gate.UserAgent(version()), policy.Usage{TDMRep: true}
	engine, err := policy.New(c)
	if err != nil {
		return r, err
	}
	defer engine.Close()
	d, err := engine.Decide(ctx, policy.Request{Target: target, Crawler: crawler, UserAgent: u.Agent})
	if err != nil {
		return r, fmt.Errorf("%s: %w", u.URL, explained(target, err))
	}
	r.Path, r.Tokens, r.Decision = target.Path, d.Tokens, d
	switch {
	case !d.Allow && d.Reason == policy.IsUnreachable:
		r.Failed = fmt.Errorf("the page was not fetched: robots.txt is unreachable: %s", d.Robots.Snapshot.Error)
		return r, nil
	case !d.Allow:
		s.Note("the page was not fetched: robots.txt denies it")
		return r, nil
	}
	if err := u.fetchPage(ctx, upstream, target, cfg, &r); err != nil {
		r.Failed = fmt.Errorf("%s: the page was not fetched: %w", u.URL, err)
	}
	switch location := r.Header.Get("Location"); {
	case location != "":
		s.Note("the response redirects to %s; ask for the preferences of that URL too", location)
	case r.Status >= 400:
		advice := ""
		if u.Agent == "" {
			advice = "; some origins want a User-Agent: send one with --agent"
		}
		s.Note("the response has status %d, so it may not be the page%s", r.Status, advice)
	}
	return r, nil
}

// fetchPage requests the page, and reads its head.
func (u *Usage) fetchPage(ctx context.Context, upstream *proxy.Transport, target canonical.Target, cfg *gate.Config, r *questions.Reading) error {
	ctx, cancel := context.WithTimeout(ctx, cfg.Egress.ResponseHeaderTimeout+cfg.Tags.HeadTimeout)
	defer cancel()
	// An empty value keeps net/http from adding its own.
	req := (&http.Request{Method: http.MethodGet, URL: target.URL(), Host: target.Host, Header: http.Header{"User-Agent": {u.Agent}}}).WithContext(ctx)
	resp, err := upstream.RoundTrip(req)
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
	return r.ReadPage(resp.Body, int(cfg.Tags.MaxHeadBytes))
}
