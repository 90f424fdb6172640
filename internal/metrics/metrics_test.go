package metrics

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"robotsgate/internal/audit"
	"robotsgate/internal/fleet"
	"robotsgate/internal/record"
	"robotsgate/policy/cache"
	"robotsgate/policy/snapshot"
	"robotsgate/policy/usage"
	"robotsgate/proxy"
)

// watched returns metrics with all sources.
func watched() *Metrics {
	m := New()
	m.Watch(watchedSources())
	return m
}

func watchedSources() Sources {
	return Sources{
		Build: map[string]string{"version": "v1", "revision": "abc", "goversion": "go1.26"},
		Connections: func() proxy.Connections {
			return proxy.Connections{Open: 3, Tunnels: 2, Rejected: map[string]int64{"limits.max_connections": 4}}
		},
		Redirections: func() proxy.ConnCounts {
			return proxy.ConnCounts{Served: 19, Refused: map[proxy.ConnRefusal]int64{"no-name": 20}}
		},
		Socks: func() proxy.ConnCounts {
			return proxy.ConnCounts{Served: 25, Refused: map[proxy.ConnRefusal]int64{"not-http": 26}}
		},
		Rules:     func() cache.Size { return cache.Size{Entries: 5, Bytes: 6} },
		Tags:      func() cache.Size { return cache.Size{Entries: 7, Bytes: 8} },
		Snapshots: func() (int64, int64) { return 9, 10 },
		SaveError: func() error { return errors.New("full") },
		Lost:      func() int64 { return 11 },
		Waiting:   func() int { return 15 },
		CAEnds:    func() time.Time { return time.Unix(1800000000, 0) },
		Fleet: func() fleet.Status {
			return fleet.Status{State: fleet.Connected, Gates: 3, Calls: 16, Failures: 17, Rejected: 18}
		},
		Evidence: func() audit.Status {
			return audit.Status{Size: 21, Error: "full", Broken: "changed"}
		},
	}
}

// scrape returns the lines of our own metrics that Prometheus would get.
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

func wantLines(t *testing.T, got string, lines ...string) {
	t.Helper()
	for _, want := range lines {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("%s is missing in\n%s", want, got)
		}
	}
}

func TestRequest(t *testing.T) {
	const ms = time.Millisecond
	in := func(l snapshot.Layer) *record.Robots { return &record.Robots{From: string(l)} }
	decided := record.Durations{Decided: ms}
	answered := record.Durations{Upstream: 1}
	m := New()
	for _, x := range []record.Record{
		{Crawler: "news", Decision: "allow", Reason: "no-match", Robots: in(snapshot.Fetched), Bytes: 30,
			Stages: record.Durations{Decided: ms, Sent: 2 * ms, Upstream: 5002 * ms, Answered: 5005 * ms}, HeadRead: "skipped", HeadWhy: "type", Status: 200, Method: "GET"},
		{Crawler: "news", Decision: "deny", Reason: "rule", Robots: in(snapshot.InMemory),
			Bytes: 12, Stages: record.Durations{Decided: ms, Answered: ms}, HeadRead: "skipped", HeadWhy: "type"},
		{Crawler: "news", Decision: "deny", Enforced: new(false), Reason: "rule", Robots: in(snapshot.InStore), Stages: decided},
		// Labels that are not prepared.
		{Crawler: "news", Decision: "allow", Reason: "new"},
		{Stages: answered, HeadRead: "skipped", HeadWhy: "new"},
		{Crawler: "news"},
		{},
		// Responses without a head.
		{Method: "HEAD", Status: 200, Stages: answered, HeadRead: "remembered"},
		{Method: "GET", Status: 304, Stages: answered, HeadRead: "remembered"},
		{Method: "GET", Status: 206, Stages: answered, HeadRead: "skipped", HeadWhy: "status"},
		{Method: "HEAD", Status: 404, Stages: answered, HeadRead: "skipped", HeadWhy: "method"},
		{Method: "HEAD", Status: 200, HeadRead: "skipped", HeadWhy: "type"}, // answered by the gate
	} {
		m.Request(&x)
	}
	m.Fetch(snapshot.Fetch{Outcome: "fresh", Took: time.Second})
	m.Fetch(snapshot.Fetch{Outcome: "fresh", TDMRep: true, Took: time.Second})
	m.Reload(true)
	m.Reload(false)
	m.Reload(false)
	m.Leaf(0)
	m.Leaf(0)
	m.Leaf(300 * time.Microsecond)
	wantLines(t, scrape(m),
		`robotsgate_requests_total{crawler="news",decision="allow",reason="no-match"} 1`,
		`robotsgate_requests_total{crawler="news",decision="deny",reason="rule"} 1`,
		`robotsgate_requests_total{crawler="news",decision="reported",reason="rule"} 1`,
		`robotsgate_requests_total{crawler="news",decision="deny",reason="unreachable"} 0`,
		`robotsgate_requests_total{crawler="news",decision="allow",reason="new"} 1`,
		`robotsgate_requests_total{crawler="news",decision="none",reason="none"} 1`,
		`robotsgate_requests_total{crawler="",decision="none",reason="none"} 7`,
		`robotsgate_robots_lookups_total{layer="fetch"} 1`,
		`robotsgate_robots_lookups_total{layer="memory"} 1`,
		`robotsgate_robots_lookups_total{layer="store"} 1`,
		`robotsgate_head_scans_total{state="skipped",why="type"} 1`,
		`robotsgate_head_scans_total{state="skipped",why="new"} 1`,
		`robotsgate_head_scans_total{state="remembered",why=""} 2`,
		`robotsgate_head_scans_total{state="partial",why="limit"} 0`,
		`robotsgate_tag_lookups_total{result="hit"} 2`,
		`robotsgate_tag_lookups_total{result="miss"} 1`,
		`robotsgate_robots_fetches_total{outcome="fresh"} 1`,
		`robotsgate_robots_fetches_total{outcome="error"} 0`,
		`robotsgate_robots_fetch_seconds_sum 1`,
		`robotsgate_tdmrep_fetches_total{outcome="fresh"} 1`,
		`robotsgate_tdmrep_fetches_total{outcome="unreachable"} 0`,
		`robotsgate_decision_seconds_count 3`,
		`robotsgate_upstream_seconds_count 6`,
		`robotsgate_upstream_seconds_bucket{le="5"} 6`,
		`robotsgate_added_seconds_sum 0.005`,
		`robotsgate_added_seconds_count 1`,
		`robotsgate_response_bytes_total 42`,
		`robotsgate_leaf_certificates_total{from="cache"} 2`,
		`robotsgate_leaf_certificates_total{from="signed"} 1`,
		`robotsgate_leaf_signing_seconds_count 1`,
		`robotsgate_config_reloads_total{outcome="applied"} 1`,
		`robotsgate_config_reloads_total{outcome="refused"} 2`,
		`robotsgate_config_reload_refused 1`,
	)
	m.Reload(true)
	wantLines(t, scrape(m), `robotsgate_config_reload_refused 0`)
}

func TestWatch(t *testing.T) {
	m := watched()
	wantLines(t, scrape(m),
		`robotsgate_build_info{goversion="go1.26",revision="abc",version="v1"} 1`,
		`robotsgate_connections 3`,
		`robotsgate_tunnels 2`,
		`robotsgate_connections_turned_away_total{limit="limits.max_connections"} 4`,
		`robotsgate_redirected_connections_total 19`,
		`robotsgate_redirected_refused_total{reason="no-name"} 20`,
		`robotsgate_socks_connections_total 25`,
		`robotsgate_socks_refused_total{reason="not-http"} 26`,
		`robotsgate_cache_entries{cache="rules"} 5`,
		`robotsgate_cache_bytes{cache="rules"} 6`,
		`robotsgate_cache_entries{cache="tags"} 7`,
		`robotsgate_cache_bytes{cache="tags"} 8`,
		`robotsgate_snapshot_origins 9`,
		`robotsgate_snapshot_bytes 10`,
		`robotsgate_snapshot_save_failing 1`,
		`robotsgate_audit_checkpoint_failing 1`,
		`robotsgate_audit_lost_records_total 11`,
		`robotsgate_ca_expiry_timestamp_seconds 1.8e+09`,
		`robotsgate_audit_not_continued 1`,
		`robotsgate_audit_checkpoint_records 21`,
		`robotsgate_fleet_up 1`,
		`robotsgate_fleet_gates 3`,
		`robotsgate_fleet_calls_total 16`,
		`robotsgate_fleet_failures_total 17`,
		`robotsgate_fleet_rejected_total 18`,
	)
}

// TestNoEvidence: a gate without an audit log has no metrics of one.
func TestNoEvidence(t *testing.T) {
	m := New()
	s := watchedSources()
	s.Evidence = nil
	m.Watch(s)
	if got := scrape(m); regexp.MustCompile(`checkpoint|continued`).MatchString(got) {
		t.Errorf("got\n%s", got)
	}
}

// TestNoFleet: a gate that is in no fleet has no metrics of one; the store may be away.
func TestNoFleet(t *testing.T) {
	alone := New()
	s := watchedSources()
	s.Fleet = nil
	alone.Watch(s)
	if got := scrape(alone); strings.Contains(got, "fleet") {
		t.Errorf("got\n%s", got)
	}
	s.Fleet = func() fleet.Status { return fleet.Status{State: fleet.Away, Gates: 1} }
	away := New()
	away.Watch(s)
	wantLines(t, scrape(away), "robotsgate_fleet_up 0", "robotsgate_fleet_gates 1")
}

// TestLint: names and units follow the conventions of Prometheus.
func TestLint(t *testing.T) {
	m := watched()
	m.Request(&record.Record{Crawler: "news"})
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	problems, err := promlint.New(w.Body).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// TestEveryReason: each reason has its counter before the first request.
func TestEveryReason(t *testing.T) {
	source, err := os.ReadFile("../../policy/decision.go")
	if err != nil {
		t.Fatal(err)
	}
	reasons := regexp.MustCompile(`Reason += "([a-z-]+)"`).FindAllStringSubmatch(string(source), -1)
	if len(reasons) < 7 {
		t.Fatalf("only %d reasons found", len(reasons))
	}
	m := New()
	m.Request(&record.Record{Crawler: "news"})
	got := scrape(m)
	for _, r := range reasons {
		if !strings.Contains(got, fmt.Sprintf(`crawler="news",decision="allow",reason=%q} 0`, r[1])) && !strings.Contains(got, fmt.Sprintf(`crawler="news",decision="deny",reason=%q} 0`, r[1])) {
			t.Errorf("the reason %q has no counter", r[1])
		}
	}
}

// TestRequestsAtOnce counts from many goroutines, also the first request of a crawler.
func TestRequestsAtOnce(t *testing.T) {
	m := New()
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for n := range 100 {
				m.Request(&record.Record{Crawler: fmt.Sprint((i + n) % 5)})
			}
		})
	}
	group.Wait()
	got := scrape(m)
	for i := range 5 {
		wantLines(t, got, fmt.Sprintf(`robotsgate_requests_total{crawler="%d",decision="none",reason="none"} 160`, i))
	}
}

// TestLabelsAreBounded: names that clients and origins invent make no series, and are in none.
func TestLabelsAreBounded(t *testing.T) {
	m := watched()
	count := func() int { return strings.Count(scrape(m), "\n") }
	before := 0
	for i := range 100 {
		invented := fmt.Sprintf("invented-%d", i)
		m.Request(&record.Record{
			ID: invented, Client: fmt.Sprint("192.0.2.", i), Method: invented, Origin: "http://" + invented, Path: "/",
			Crawler: "default", Decision: "allow", Reason: "no-group", Token: invented, Note: invented, Error: invented, Status: 200 + i, Stages: record.Durations{Decided: 1, Upstream: 2},
		})
		m.Fetch(snapshot.Fetch{Origin: "http://" + invented, Outcome: "fresh"})
		m.Leaf(time.Duration(i))
		if i == 0 {
			before = count()
		}
	}
	if after := count(); after != before {
		t.Errorf("%d series after one request, %d after 100", before, after)
	}
	if all := scrape(m); regexp.MustCompile(`invented|192\.0\.2`).MatchString(all) {
		t.Errorf("text from the client is in\n%s", all)
	}
}

// page is the record of a usual request.
func page() *record.Record {
	return &record.Record{
		Crawler: "news", Decision: "allow", Reason: "no-match", Robots: &record.Robots{From: string(snapshot.InMemory)},
		Bytes: 30_000, Stages: record.Durations{Decided: 20 * time.Microsecond, Sent: 25 * time.Microsecond, Upstream: 30 * time.Millisecond, Answered: 31 * time.Millisecond},
		HeadRead: "complete", Status: 200, Method: "GET",
	}
}

func TestRequestAllocatesNothing(t *testing.T) {
	m, x := New(), page()
	if n := testing.AllocsPerRun(100, func() { m.Request(x) }); n != 0 {
		t.Errorf("counting a request allocates %v times", n)
	}
}

// TestAddedWithoutWait: the wait for a pacer is not time that the gate adds.
func TestAddedWithoutWait(t *testing.T) {
	const ms = time.Millisecond
	m := New()
	m.Request(&record.Record{Paced: record.Paced{Held: 3}, Stages: record.Durations{Decided: ms, Sent: 3002 * ms, Upstream: 3004 * ms, Answered: 3005 * ms}})
	wantLines(t, scrape(m), `robotsgate_added_seconds_sum 0.003`, `robotsgate_added_seconds_count 1`)
}

// TestStated counts a request once for each category, whatever categories the publisher names.
func TestStated(t *testing.T) {
	m := New()
	m.Request(&record.Record{Usage: []usage.Detail{
		{Use: "train-ai", Value: "y"}, {Use: "train-ai", Value: "n"}, {Use: "search", Value: "y"}, {Use: "bots", Value: "y"}, {Use: "*", Value: "n"}, {Use: "use", Value: "full"},
	}})
	m.Request(&record.Record{Usage: []usage.Detail{{Use: "use", Value: "full"}}})
	wantLines(t, scrape(m),
		`robotsgate_usage_stated_total{category="train-ai",value="n"} 1`,
		`robotsgate_usage_stated_total{category="train-ai",value="y"} 0`,
		`robotsgate_usage_stated_total{category="ai-input",value="n"} 0`,
		`robotsgate_usage_stated_total{category="search",value="y"} 1`,
		`robotsgate_usage_stated_total{category="tdm",value="y"} 0`,
		`robotsgate_usage_stated_total{category="other",value="n"} 1`,
		`robotsgate_usage_stated_total{category="other",value="y"} 0`,
	)
}
