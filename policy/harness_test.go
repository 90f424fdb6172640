package policy

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"testing"

	"robotsgate/policy/canonical"
	"robotsgate/policy/internal/origintest"
	"robotsgate/policy/robotstxt"
)

// Short names for what is used in most tests.
var (
	newOrigins = origintest.New
	raw        = origintest.Raw
	rules      = origintest.Rules
	slow       = origintest.Slow
)

const (
	example   = "https://example.com/robots.txt"
	forbidden = "HTTP/1.1 403 Forbidden\n\n"
)

// defaults are DefaultRobots with a small cache.
func defaults() Robots {
	r := DefaultRobots()
	r.CacheBytes = 1 << 20
	return r
}

// engineFor returns an engine, which is closed at the end of the test or its bubble.
func engineFor(t *testing.T, robots Robots, web http.RoundTripper, log io.Writer) *Engine {
	t.Helper()
	return engineWith(t, Config{Robots: robots, Transport: web, Log: slog.New(slog.NewTextHandler(log, nil))})
}

func engineWith(t testing.TB, c Config) *Engine {
	t.Helper()
	e, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close) // twice does no harm
	return e
}

func targetOf(t testing.TB, url string) canonical.Target {
	t.Helper()
	target, err := canonical.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	return target
}

// asks returns a request of a crawler that sends this User-Agent.
func asks(t testing.TB, url, userAgent string) Request {
	t.Helper()
	return Request{Target: targetOf(t, url), Crawler: &Crawler{Name: "default", Mode: Enforce}, UserAgent: userAgent}
}

// again decides a request once more, by the evidence of a decision about it.
func again(c Config, r Request, d *Decision) (*Decision, bool) {
	past := PastRequest{Target: r.Target, Method: r.Method, Whole: r.whole, Crawler: r.Crawler, Tokens: d.Tokens, Asked: d.Asked, TDMRep: d.TDMRep}
	if d.Robots != nil {
		past.Judged, past.Answer, past.Good = d.Robots.At, d.Robots.Answer, d.Robots.Good
		past.Rules = func(string) *robotstxt.File { return d.Robots.File }
	}
	return c.Replay(past)
}

// verdict sums up a decision in a few words.
func verdict(d *Decision, err error) string {
	unsent, ok := errors.AsType[origintest.Fault](err)
	switch {
	case ok:
		return "error " + unsent.Text
	case errors.Is(err, context.DeadlineExceeded):
		return "error deadline"
	case err != nil:
		return "error other"
	}
	word := "deny"
	if d.Allow {
		word = "allow"
	}
	word += " " + string(d.Reason)
	if d.Robots != nil {
		word += " " + string(d.Robots.State)
	}
	return word
}
