// Package metrics counts what the gate does, for Prometheus. No label has a
// value that a client could invent.
package metrics

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"robotsgate/policy"
	"robotsgate/proxy"
)

// Metrics counts requests and fetches.
type Metrics struct {
	registry *prometheus.Registry

	requests *prometheus.CounterVec
	heads    *prometheus.CounterVec
	fetches  *prometheus.CounterVec
	fetched  prometheus.Histogram
	decided  prometheus.Histogram
	upstream prometheus.Histogram
	bytes    prometheus.Counter
}

// New returns metrics that have counted nothing.
func New() *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "robotsgate_requests_total", Help: "Requests by decision (allow, deny, reported, none), reason and crawler."},
			[]string{"decision", "reason", "crawler"}),
		heads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "robotsgate_head_scans_total", Help: "Responses by how far the page's head was read for robots tags."},
			[]string{"state", "why"}),
		fetches: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "robotsgate_robots_fetches_total", Help: "Fetches of robots.txt by outcome."},
			[]string{"outcome"}),
		fetched:  histogram("robotsgate_robots_fetch_seconds", "Time that fetching a robots.txt took."),
		decided:  histogram("robotsgate_decision_seconds", "Time from a request's arrival to the decision about it, with any fetch of robots.txt."),
		upstream: histogram("robotsgate_upstream_seconds", "Time from sending a request on to the head of the origin's response."),
		bytes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "robotsgate_response_bytes_total", Help: "Bytes of response bodies passed on to clients."}),
	}
	m.registry.MustRegister(m.requests, m.heads, m.fetches, m.fetched, m.decided, m.upstream, m.bytes,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func histogram(name, help string) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help,
		Buckets: prometheus.ExponentialBuckets(0.00001, 4, 12)}) // 10 µs to 42 s
}

// Handler serves the metrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// Request counts one that is over.
func (m *Metrics) Request(x *proxy.Exchange) {
	decision, reason := "none", "none"
	if d := x.Decision; d != nil {
		reason = string(d.Reason)
		switch {
		case d.Allow:
			decision = "allow"
		case d.Enforced:
			decision = "deny"
		default:
			decision = "reported"
		}
	}
	m.requests.WithLabelValues(decision, reason, x.Crawler).Inc()
	if x.Head.State != "" {
		m.heads.WithLabelValues(x.Head.State, x.Head.Why).Inc()
	}
	if x.Decided > 0 {
		m.decided.Observe(x.Decided.Seconds())
	}
	if x.Upstream > 0 {
		m.upstream.Observe((x.Upstream - x.Decided).Seconds())
	}
	m.bytes.Add(float64(x.Bytes))
}

// Fetch counts one of robots.txt.
func (m *Metrics) Fetch(f policy.Fetch) {
	m.fetches.WithLabelValues(f.Outcome).Inc()
	m.fetched.Observe(f.Took.Seconds())
}
