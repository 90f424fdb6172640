package metrics

import (
	"fmt"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"time"

	"robotsgate/policy"
	"robotsgate/proxy"
)

// scrape returns what Prometheus would get of our own metrics.
func scrape(m *Metrics) string {
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	var own strings.Builder
	for line := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(line, "robotsgate_") {
			own.WriteString(line)
		}
	}
	return own.String()
}

func TestRequest(t *testing.T) {
	m := New()
	for _, x := range []proxy.Exchange{
		{Crawler: "news", Decision: &policy.Decision{Allow: true, Reason: policy.NoMatch}, Bytes: 30,
			Decided: time.Millisecond, Upstream: 5 * time.Second, Head: proxy.Head{State: "skipped", Why: "type"}},
		{Crawler: "news", Decision: &policy.Decision{Enforced: true, Reason: policy.ByRule}, Bytes: 12, Decided: time.Millisecond},
		{Crawler: "news", Decision: &policy.Decision{Reason: policy.ByRule}, Decided: time.Millisecond},
		{},
	} {
		m.Request(&x)
	}
	m.Fetch(policy.Fetch{Outcome: "fresh", Took: time.Second})
	got := scrape(m)
	for _, want := range []string{
		`robotsgate_requests_total{crawler="news",decision="allow",reason="no-match"} 1`,
		`robotsgate_requests_total{crawler="news",decision="deny",reason="rule"} 1`,
		`robotsgate_requests_total{crawler="news",decision="reported",reason="rule"} 1`,
		`robotsgate_requests_total{crawler="",decision="none",reason="none"} 1`,
		`robotsgate_head_scans_total{state="skipped",why="type"} 1`,
		`robotsgate_robots_fetches_total{outcome="fresh"} 1`,
		`robotsgate_robots_fetch_seconds_sum 1`,
		`robotsgate_decision_seconds_count 3`,
		`robotsgate_upstream_seconds_sum 4.999`,
		`robotsgate_response_bytes_total 42`,
	} {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("%s is missing in\n%s", want, got)
		}
	}
}

// TestLabelsAreBounded counts what clients and origins invent: it must not make
// a series of its own, nor show up in one.
func TestLabelsAreBounded(t *testing.T) {
	m := New()
	count := func() int { return strings.Count(scrape(m), "\n") }
	before := 0
	for i := range 100 {
		invented := fmt.Sprintf("invented-%d", i)
		token := policy.Decision{Allow: true, Reason: policy.NoGroup, Token: invented, Tokens: []string{invented}, Note: invented, URL: invented}
		m.Request(&proxy.Exchange{
			ID: invented, Client: netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}), Method: invented, URL: "http://" + invented + "/",
			Crawler: "default", Decision: &token, Error: invented, Status: 200 + i, Decided: 1, Upstream: 2,
		})
		m.Fetch(policy.Fetch{Origin: "http://" + invented, Outcome: "fresh"})
		if i == 0 {
			before = count()
		}
	}
	if after := count(); after != before {
		t.Errorf("%d series after one request, %d after 100", before, after)
	}
	if all := scrape(m); regexp.MustCompile(`invented|192\.0\.2`).MatchString(all) {
		t.Errorf("a client's own words are in\n%s", all)
	}
}
