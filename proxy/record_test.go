package proxy_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"robotsgate/internal/record"
	"robotsgate/policy"
	"robotsgate/policy/glob"
	"robotsgate/policy/pace"
	"robotsgate/proxy"
	"robotsgate/proxy/internal/proxytest"
)

// TestRefused: the record of a request names the kind of its refusal, and the cause.
func TestRefused(t *testing.T) {
	overridden := func(action policy.Action) func(*policy.Config) {
		return func(c *policy.Config) {
			c.Overrides = []policy.Override{{Hosts: []glob.Glob{glob.Text("*")}, Action: action, Reason: "contract 7"}}
		}
	}
	for name, c := range map[string]struct {
		options proxytest.Options
		method  string
		url     string // begins with / for a path of the origin
		refused record.Refusal
		cause   string
	}{
		"a rule":                 {url: "/private/x", refused: "rule", cause: "robots.txt line 2: Disallow: /private/"},
		"an override":            {url: "/", options: proxytest.Options{Engine: overridden(policy.Deny)}, refused: "override", cause: "operator's override: contract 7"},
		"unreachable":            {url: "http://127.0.0.1:1/", refused: "unreachable", cause: "robots.txt unreachable: "},
		"a prohibited address":   {url: "/", options: proxytest.Options{Egress: func(e *proxy.Egress) { e.AllowPrivate = nil }}, refused: record.ByGuard, cause: "address 127.0.0.1"},
		"an unknown client":      {url: "/", options: proxytest.Options{Engine: func(c *policy.Config) { c.Crawlers.RefuseUnknown = true }}, refused: record.ByLogin, cause: "unknown client"},
		"a limit":                {url: "/", options: proxytest.Options{Upstream: func(u proxy.Upstream) proxy.Upstream { return exhausted{u} }}, refused: record.ByLimit, cause: "out of file descriptors"},
		"the pace":               {url: "/", options: proxytest.Options{Proxy: func(o *proxy.Options) { o.Settings.Pacer = tooLatePacer{} }}, refused: record.ByPace, cause: "pace"},
		"the audit log":          {url: "/", options: proxytest.Options{Proxy: func(o *proxy.Options) { o.Ready = func() error { return errors.New("disk full") } }}, refused: record.ByAudit, cause: "audit log"},
		"a method":               {url: "/", method: "TRACE", refused: record.IsMalformed, cause: "TRACE of this kind"},
		"a hidden dot segment":   {url: "/x/..%2fy", refused: record.IsMalformed, cause: "The request was not understood"},
		"report mode":            {url: "/private/x", options: proxytest.Options{Engine: func(c *policy.Config) { c.Crawlers.Default.Mode = policy.Report }}, cause: "robots.txt line 2: Disallow: /private/"},
		"an allowed request":     {url: "/"},
		"an origin that is down": {url: "http://127.0.0.1:1/", options: proxytest.Options{Engine: overridden(policy.Allow)}},
	} {
		t.Run(name, func(t *testing.T) {
			g := proxytest.Start(t, c.options)
			method, url := http.MethodGet, c.url
			if c.method != "" {
				method = c.method
			}
			if strings.HasPrefix(url, "/") {
				url = g.HTTP + url
			}
			g.Do(method, url, nil)
			x := <-g.Done
			kind := c.refused
			if name == "report mode" {
				kind = "rule"
			}
			if x.Kind() != kind {
				t.Errorf("the kind is %q, want %q", x.Kind(), kind)
			}
			if x.Denied() != (c.refused != "") || !strings.HasPrefix(x.Cause, c.cause) || c.cause == "" && x.Cause != "" {
				t.Errorf("got %q, %q, want %q, %q", x.Refused, x.Cause, c.refused, c.cause)
			}
		})
	}
}

// A tooLatePacer lets no request pass.
type tooLatePacer struct{ proxy.Pacer }

func (tooLatePacer) Wait(context.Context, pace.Request) (*pace.Turn, error) {
	return nil, &pace.TooLate{}
}

// An exhausted upstream has no resources left.
type exhausted struct{ proxy.Upstream }

func (exhausted) RoundTrip(*http.Request) (*http.Response, error) { return nil, proxy.ErrExhausted }
