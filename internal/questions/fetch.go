package questions

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"robotsgate/htmlmeta"
	"robotsgate/policy"
	"robotsgate/policy/canonical"
)

// A Fetcher fetches what there is to read about URLs.
type Fetcher struct {
	Engine       *policy.Engine // without overrides: they are the operator's, not the publisher's
	Transport    http.RoundTripper
	Timeout      time.Duration // for a page
	MaxHeadBytes int
	Explain      func(canonical.Target, error) error // says what to do about an error of a decision
}

// Fetch asks the origin for its robots.txt and its tdmrep.json and, if the crawler may fetch it, for the page.
func (f *Fetcher) Fetch(ctx context.Context, url string, crawler *policy.Crawler, agent string) (r Reading, err error) {
	target, err := canonical.ReadURL(url)
	if err != nil {
		return r, fmt.Errorf("%s: %w", url, err)
	}
	d, err := f.Engine.Decide(ctx, policy.Request{Target: target, Crawler: crawler, UserAgent: agent})
	if err != nil {
		return r, fmt.Errorf("%s: %w", url, f.Explain(target, err))
	}
	r.Path, r.Tokens, r.Decision = target.Path, d.Tokens, d
	switch {
	case !d.Allow && d.Reason == policy.IsUnreachable:
		r.Failed = fmt.Errorf("the page was not fetched: robots.txt is unreachable: %s", d.Robots.Snapshot.Error)
	case d.Allow:
		if err := f.page(ctx, target, agent, &r); err != nil {
			r.Failed = fmt.Errorf("%s: the page was not fetched: %w", url, err)
		}
	}
	return r, nil
}

// page requests the page, and reads its head.
func (f *Fetcher) page(ctx context.Context, target canonical.Target, agent string, r *Reading) error {
	ctx, cancel := context.WithTimeout(ctx, f.Timeout)
	defer cancel()
	// An empty value keeps net/http from adding its own.
	req := (&http.Request{Method: http.MethodGet, URL: target.URL(), Host: target.Host, Header: http.Header{"User-Agent": {agent}}}).WithContext(ctx)
	resp, err := f.Transport.RoundTrip(req)
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
	return r.ReadPage(resp.Body, f.MaxHeadBytes)
}

// Remarks say what a fetched reading lacks. Advice is for a response that may not be the page.
func (r *Reading) Remarks(advice string) (all []string) {
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
