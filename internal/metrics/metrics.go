// Package metrics counts what the gate does, for Prometheus. No label has a value that a
// client can choose.
package metrics

// Where to change what.
//
//	a metric  a file here, docs/admin.md and deploy/grafana.json

import (
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"robotsgate/internal/record"
	"robotsgate/policy/snapshot"
	"robotsgate/policy/usage"
)

// Metrics counts requests, fetches and certificates.
type Metrics struct {
	registry *prometheus.Registry

	requests                   *prometheus.CounterVec
	prepared                   sync.Map // crawlers with all counters of requests
	heads                      *prometheus.CounterVec
	lookups                    *prometheus.CounterVec
	recalls                    *prometheus.CounterVec
	bytes                      prometheus.Counter
	decided                    prometheus.Histogram
	held                       prometheus.Counter
	heldFor                    prometheus.Histogram
	paceRefused, budgetRefused prometheus.Counter
	stated                     *prometheus.CounterVec
	upstream                   prometheus.Histogram
	added                      prometheus.Histogram

	signatures *prometheus.CounterVec // requests with one
	signature  prometheus.Histogram

	fetches       *prometheus.CounterVec
	tdmrepFetches *prometheus.CounterVec
	fetched       prometheus.Histogram

	reloads       *prometheus.CounterVec
	reloadRefused prometheus.Gauge

	leaves  *prometheus.CounterVec
	signing prometheus.Histogram
}

// The upper ends of the histograms' buckets, in seconds.
var (
	// From a decision in memory, some 10 µs, to a robots.txt that times out twice.
	decisionTimes = []float64{10e-6, 25e-6, 50e-6, 100e-6, 250e-6, 1e-3, 5e-3, 10e-3, 25e-3, 50e-3, 100e-3, 250e-3, 500e-3, 1, 2.5, 5, 10, 25}
	// As decisionTimes, and the wait for a page's head.
	addedTimes = []float64{25e-6, 50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 100e-3, 250e-3, 500e-3, 1, 2.5, 5, 10, 30}
	// From a cache in the same network to an origin that is given up.
	originTimes = []float64{1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 100e-3, 250e-3, 500e-3, 1, 2.5, 5, 10, 30, 60}
	// Ed25519 takes some 40 µs, and more where the processor is busy.
	requestSigningTimes = []float64{25e-6, 50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 5e-3, 25e-3}
	// ECDSA takes some 200 µs, and waits where the processor is busy.
	signingTimes = []float64{100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 100e-3, 1}
)

// New returns metrics that have counted nothing.
func New() *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	m.requests = m.vector("robotsgate_requests_total", "Requests by decision (allow, deny, reported: would be denied, but report mode let it through, none), reason and crawler.", "decision", "reason", "crawler")
	m.prepare("") // requests for which the crawler was not identified
	m.heads = m.vector("robotsgate_head_scans_total", "Responses of origins by how far the page's head was read for robots tags, and why not further.", "state", "why")
	for _, labels := range [][2]string{
		{"complete", ""}, {"remembered", ""}, {"partial", "limit"}, {"partial", "timeout"}, {"partial", "encoding"},
		{"skipped", "type"}, {"skipped", "status"}, {"skipped", "method"}, {"skipped", "off"},
	} {
		m.heads.WithLabelValues(labels[0], labels[1])
	}
	m.lookups = m.counters("robotsgate_robots_lookups_total", "Decisions by where the robots.txt was found: memory, store, or fetch, for which the request waits.", "layer",
		string(snapshot.InMemory), string(snapshot.InStore), string(snapshot.Fetched))
	m.recalls = m.counters("robotsgate_tag_lookups_total", "Responses without a page's head (304, 206, to HEAD) by whether the URL's robots tags were remembered.", "result", "hit", "miss")
	m.bytes = m.counter("robotsgate_response_bytes_total", "Bytes of response bodies passed on to clients.")
	m.decided = m.histogram("robotsgate_decision_seconds", "Time from the arrival of a request to the decision, with any wait for robots.txt.", decisionTimes)
	m.upstream = m.histogram("robotsgate_upstream_seconds", "Time from sending a request on to the head of the origin's response, or to its failure.", originTimes)
	m.added = m.histogram("robotsgate_added_seconds", "Time that the gate adds to a request: until it is sent on, and from the head of the origin's response to that of the answer.", addedTimes)
	m.held = m.counter("robotsgate_pace_held_total", "Requests that have waited for their turn, and were sent.")
	m.heldFor = m.histogram("robotsgate_pace_held_seconds", "Time that these requests have waited.", originTimes)
	m.paceRefused = m.counter("robotsgate_pace_refused_total", "Requests that were refused since their turn would have come too late.")
	m.budgetRefused = m.counter("robotsgate_budget_refused_total", "Requests that were refused since their crawler's budget for the host was spent.")
	m.stated = m.vector("robotsgate_usage_stated_total", "Requests for which a usage preference was in force, by category (train-ai, ai-input, search, tdm, other) and value (y: allowed, n: reserved).", "category", "value")
	for _, category := range append(slices.Clone(usage.Purposes), other) {
		m.stated.WithLabelValues(string(category), "y")
		m.stated.WithLabelValues(string(category), "n")
	}
	m.signatures = m.counters("robotsgate_signed_requests_total", "Requests that were signed (Web Bot Auth), by crawler.", "crawler", "default") // so that the name exists before the first
	m.signature = m.histogram("robotsgate_request_signing_seconds", "Time to make the signature of a request.", requestSigningTimes)
	outcomes := []string{string(snapshot.Fresh), string(snapshot.Unavailable), string(snapshot.Unreachable), "error"}
	m.fetches = m.counters("robotsgate_robots_fetches_total", "Fetches of robots.txt by outcome.", "outcome", outcomes...)
	m.tdmrepFetches = m.counters("robotsgate_tdmrep_fetches_total", "Fetches of tdmrep.json by outcome.", "outcome", outcomes...)
	m.fetched = m.histogram("robotsgate_robots_fetch_seconds", "Duration of fetches of robots.txt.", originTimes)
	m.reloads = m.counters("robotsgate_config_reloads_total", "Changes of the configuration: applied, or refused because of a mistake.", "outcome", "applied", "refused")
	m.reloadRefused = prometheus.NewGauge(prometheus.GaugeOpts{Name: "robotsgate_config_reload_refused", Help: "1 while a changed configuration is refused because of a mistake, so that the one before stays in force."})
	m.registry.MustRegister(m.reloadRefused)
	m.leaves = m.counters("robotsgate_leaf_certificates_total", "Certificates presented to clients: signed for the connection, or from the cache.", "from", "signed", "cache")
	m.signing = m.histogram("robotsgate_leaf_signing_seconds", "Duration of making and signing a certificate.", signingTimes)
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *Metrics) vector(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	m.registry.MustRegister(c)
	return c
}

// counters returns counters with one label. Those with the given values exist from now on: Prometheus computes rates
// from increases, and sees none in a counter that begins at 1.
func (m *Metrics) counters(name, help, label string, values ...string) *prometheus.CounterVec {
	c := m.vector(name, help, label)
	for _, v := range values {
		c.WithLabelValues(v)
	}
	return c
}

func (m *Metrics) counter(name, help string) prometheus.Counter {
	return m.vector(name, help).WithLabelValues()
}

func (m *Metrics) histogram(name, help string, buckets []float64) prometheus.Histogram {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
	m.registry.MustRegister(h)
	return h
}

// Handler serves the metrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// Request counts a request, after its end.
func (m *Metrics) Request(x *record.Record) {
	m.decision(x)
	if x.Robots != nil && x.Robots.From != "" {
		m.lookups.WithLabelValues(x.Robots.From).Inc()
	}
	at := x.Stages
	if at.Upstream > 0 { // the response is the origin's
		m.tags(x)
	}
	if at.Decided > 0 {
		m.decided.Observe(at.Decided.Seconds())
	}
	if at.Upstream > 0 {
		m.upstream.Observe((at.Upstream - at.Sent).Seconds())
		if at.Answered > 0 { // the client waited for it
			m.added.Observe((at.Answered - at.Upstream + at.Sent - record.Seconds(x.Paced.Held)).Seconds())
		}
	}
	m.bytes.Add(float64(x.Bytes))
	if x.Paced.Held > 0 && at.Sent > 0 {
		m.held.Inc()
		m.heldFor.Observe(x.Paced.Held)
	}
	m.statements(x.Usage)
	if x.Signed != "" {
		m.signatures.WithLabelValues(x.Crawler).Inc()
		m.signature.Observe(at.Signing.Seconds())
	}
	switch x.Refused {
	case record.ByPace:
		m.paceRefused.Inc()
	case record.ByBudget:
		m.budgetRefused.Inc()
	}
}

// tags counts how the robots tags of a response were found.
func (m *Metrics) tags(x *record.Record) {
	if x.HeadRead != "" {
		m.heads.WithLabelValues(x.HeadRead, x.HeadWhy).Inc()
	}
	// A response without a head that belongs to a page that may have one.
	headless := x.Status == http.StatusNotModified || x.Status == http.StatusPartialContent ||
		x.Status == http.StatusOK && x.Method == http.MethodHead
	switch {
	case !headless:
	case x.HeadRead == "remembered":
		m.recalls.WithLabelValues("hit").Inc()
	default:
		m.recalls.WithLabelValues("miss").Inc()
	}
}

// other is the category of all categories that mean nothing to the gate: a publisher can name any.
const other usage.Purpose = "other"

// statements counts a request once for each category. Of several statements n counts.
func (m *Metrics) statements(stated []usage.Detail) {
	if len(stated) == 0 {
		return
	}
	values := map[usage.Purpose]string{}
	for _, s := range stated {
		category, value := usage.Purpose(s.Use), s.Value
		if s.Use == usage.LevelCategory {
			continue
		}
		if !slices.Contains(usage.Purposes, category) {
			category = other
		}
		if values[category] != "n" {
			values[category] = value
		}
	}
	for category, value := range values {
		m.stated.WithLabelValues(string(category), value).Inc()
	}
}

// Fetch counts a fetch of a robots.txt or a tdmrep.json.
func (m *Metrics) Fetch(f snapshot.Fetch) {
	if f.TDMRep {
		m.tdmrepFetches.WithLabelValues(f.Outcome).Inc()
		return
	}
	m.fetches.WithLabelValues(f.Outcome).Inc()
	m.fetched.Observe(f.Took.Seconds())
}

// Leaf counts a certificate that is presented to a client, with the time that signing took;
// 0: it was signed before.
func (m *Metrics) Leaf(signed time.Duration) {
	if signed == 0 {
		m.leaves.WithLabelValues("cache").Inc()
		return
	}
	m.leaves.WithLabelValues("signed").Inc()
	m.signing.Observe(signed.Seconds())
}

// Reload counts a change of the configuration.
func (m *Metrics) Reload(applied bool) {
	outcome, refused := "refused", 1.0
	if applied {
		outcome, refused = "applied", 0
	}
	m.reloadRefused.Set(refused)
	m.reloads.WithLabelValues(outcome).Inc()
}
