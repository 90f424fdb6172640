package proxy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"robotsgate/internal/field"
	"robotsgate/internal/record"
	"robotsgate/policy"
	"robotsgate/policy/pace"
	"robotsgate/policy/snapshot"
	"robotsgate/proxy/internal/response"
)

// notSubresources are the values of Sec-Fetch-Dest of requests that are not for parts of a page.
var notSubresources = []string{"", "document", "iframe", "frame", "empty"}

// awaitTurn waits until the request may be sent. It returns its turn, nil if the request does not count, or what to
// answer if it must not be sent.
func awaitTurn(
	ctx context.Context, in *inbound, d *policy.Decision,
) (turn *pace.Turn, paced response.Paced, no *answer) {
	pacer := in.settings.Pacer
	if pacer == nil {
		return nil, paced, nil
	}
	reported, ask := d.Crawler.Mode == policy.Report, paceRequest(in, d)
	var err error
	if reported {
		turn, err = pacer.Observe(ask)
	} else {
		turn, err = pacer.Wait(ctx, ask)
	}
	if turn != nil {
		paced = response.PacedBy(turn.Distance, d)
		paced.Reported = reported
		paced.Hold(turn.Held, turn.By)
		paced.Budget.Limit = turn.Limit
	}
	if err == nil {
		return turn, paced, nil
	}
	if errors.Is(err, pace.ErrClosed) {
		return nil, paced, &answer{
			status: http.StatusServiceUnavailable, kind: "ending", title: "The gate is ending", fault: "proxy_internal_response", cause: err.Error(), err: err.Error(),
			retry: time.Second, refused: record.ByPace, detail: "The request was waiting for its turn, and the gate is about to end. Another gate may serve it.",
		}
	}
	late, ok := errors.AsType[*pace.TooLate](err)
	if !ok {
		return nil, paced, failure(err, in, nil)
	}
	if turn == nil {
		paced = response.PacedBy(late.Distance, d)
	}
	paced.Refuse(late)
	switch {
	case reported:
		return turn, paced, nil
	case late.By == pace.ByBudget:
		return nil, paced, spent(in.target.Hostname(), late)
	}
	return nil, paced, tooLate(&paced, d.RobotsURL, late)
}

// paceRequest returns what the pacer needs to know of the request. The client's Sec-Fetch-Dest tells whether it is
// for a part of a page.
func paceRequest(in *inbound, d *policy.Decision) pace.Request {
	ask := pace.Request{
		Origin: in.target.Origin(), Crawler: d.Crawler.Name, Token: d.Token, LongestDelay: longestDelay(d),
		Fetched:     d.Robots != nil && d.Robots.From == snapshot.Fetched,
		Subresource: !slices.Contains(notSubresources, in.header.Get("Sec-Fetch-Dest")),
	}
	if seconds, _, ok := d.Group.CrawlDelay(); ok {
		ask.CrawlDelay = delay(seconds)
	}
	return ask
}

// longestDelay returns the longest Crawl-delay of any group.
func longestDelay(d *policy.Decision) (longest time.Duration) {
	if d.Robots == nil || d.Robots.File == nil {
		return 0
	}
	return delay(d.Robots.File.LongestCrawlDelay())
}

// delay returns seconds as a duration, at most some 30 years.
func delay(seconds float64) time.Duration {
	return time.Duration(min(seconds, 1e9) * float64(time.Second))
}

// spent answers a request for which a budget has nothing left.
func spent(host string, late *pace.TooLate) *answer {
	l := late.Limit
	p := &answer{
		status: http.StatusTooManyRequests, kind: "budget", title: "The budget is spent", fault: "http_request_denied",
		retry: late.After, refused: record.ByBudget, err: late.Error(),
		cause: fmt.Sprintf("budget: %d requests in %s s", l.Starts, seconds(l.Window)),
	}
	p.detail = fmt.Sprintf("This gate sends at most %d requests of this crawler to %s in %s (pace.budgets, entry %d).", l.Starts, host, field.Duration(l.Window), l.Entry)
	if late.Full {
		p.title = "Too many hosts are counted"
		p.detail = "This gate counts requests to so many hosts that it cannot count those to " + host + " too (pace.budgets)."
	}
	return p
}

// tooLate answers a request that is not held.
func tooLate(paced *response.Paced, robotsURL string, late *pace.TooLate) *answer {
	p := &answer{
		status: http.StatusTooManyRequests, kind: "pace", title: "Too early for this origin", fault: "http_request_denied",
		retry: paced.Retry, refused: record.ByPace, err: late.Error(),
	}
	switch {
	case paced.Source == pace.ByPause:
		p.cause = "pace: the origin has asked for a pause"
		p.detail = "The origin has answered 429 or 503 to this crawler, so its requests pause."
	case paced.Source == pace.ByCrawlDelay:
		p.cause = fmt.Sprintf("pace: robots.txt line %d: Crawl-delay: %s", paced.Line, seconds(paced.Delay))
		p.detail = fmt.Sprintf("Line %d of %s asks for %s s between two requests.", paced.Line, robotsURL, seconds(paced.Delay))
	default:
		p.cause = fmt.Sprintf("pace: %s s between two requests", seconds(paced.Delay))
		p.detail = "This gate keeps a distance of " + field.Duration(paced.Delay) + " between two requests to an origin."
	}
	if late.Full {
		p.detail += " As many requests wait for this origin as may (pace.max_queue)."
	} else {
		p.detail += " This request would have to wait for longer than a request may (pace.max_wait, pace.max_delay)."
	}
	return p
}

// seconds returns a duration in seconds with at most three decimals.
func seconds(d time.Duration) string {
	return strconv.FormatFloat(float64(d.Round(time.Millisecond).Milliseconds())/1000, 'f', -1, 64)
}

// paceResponse returns what the pacer needs to know of a response; nil: there was none.
func paceResponse(resp *http.Response) pace.Response {
	if resp == nil {
		return pace.Response{}
	}
	return pace.Response{Status: resp.StatusCode, RetryAfter: resp.Header.Get("Retry-After"), Date: resp.Header.Get("Date")}
}
