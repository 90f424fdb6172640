package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"robotsgate/internal/audit"
	"robotsgate/internal/fleet"
	"robotsgate/policy/cache"
	"robotsgate/proxy"
)

// Sources are functions that are called for each scrape, from several goroutines. None may be
// nil, except where a comment says otherwise.
type Sources struct {
	Build        map[string]string // what identifies the program, as labels
	Connections  func() proxy.Connections
	Redirections func() proxy.ConnCounts
	Socks        func() proxy.ConnCounts
	Rules        func() cache.Size                   // compiled robots.txt files in memory
	Tags         func() cache.Size                   // remembered robots tags
	Snapshots    func() (origins int64, bytes int64) // in the store
	SaveError    func() error                        // why snapshots can't be saved; nil: they can
	Lost         func() int64                        // entries of the audit log that could not be written
	Waiting      func() int                          // requests that wait for their turn
	CAEnds       func() time.Time                    // when the CA's certificate expires
	Fleet        func() fleet.Status                 // may be nil: the gate is in no fleet, and has no metrics of one
	Evidence     func() audit.Status                 // may be nil: there is no audit log
}

// Watch adds the sources to the metrics. It is called once.
func (m *Metrics) Watch(s Sources) {
	m.registry.MustRegister(watch{s})
}

type watch struct{ Sources }

// A sender sends a metric to Prometheus.
type sender func(kind prometheus.ValueType, name, help string, value int64, labels prometheus.Labels)

// Describe describes nothing: Collect makes each description with its value.
func (w watch) Describe(chan<- *prometheus.Desc) {}

func (w watch) Collect(ch chan<- prometheus.Metric) {
	const gauge, counter = prometheus.GaugeValue, prometheus.CounterValue
	send := func(kind prometheus.ValueType, name, help string, value int64, labels prometheus.Labels) {
		ch <- prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, nil, labels), kind, float64(value))
	}
	send(gauge, "robotsgate_build_info", "The version of the program, as labels; the value is always 1.", 1, w.Build)
	conns := w.Connections()
	send(gauge, "robotsgate_connections", "Open client connections.", int64(conns.Open), nil)
	send(gauge, "robotsgate_tunnels", "Open CONNECT tunnels.", int64(conns.Tunnels), nil)
	for limit, n := range conns.Rejected {
		send(counter, "robotsgate_connections_turned_away_total", "Connections refused because of a limit, by the key of the configuration that sets it.", n, prometheus.Labels{"limit": limit})
	}
	redirected := w.Redirections()
	send(counter, "robotsgate_redirected_connections_total", "Connections that the network has redirected to the gate, and that were served.", redirected.Served, nil)
	for reason, n := range redirected.Refused {
		send(counter, "robotsgate_redirected_refused_total", "Connections to listen_transparent that were closed before any request, by reason.", n, prometheus.Labels{"reason": string(reason)})
	}
	socks := w.Socks()
	send(counter, "robotsgate_socks_connections_total", "SOCKS connections that were served.", socks.Served, nil)
	for reason, n := range socks.Refused {
		send(counter, "robotsgate_socks_refused_total", "SOCKS connections that were closed before any request of HTTP, by reason.", n, prometheus.Labels{"reason": string(reason)})
	}
	for name, size := range map[string]cache.Size{"rules": w.Rules(), "tags": w.Tags()} {
		send(gauge, "robotsgate_cache_bytes", "Memory used by caches: rules of robots.txt files, tags by URL.", size.Bytes, prometheus.Labels{"cache": name})
		send(gauge, "robotsgate_cache_entries", "Entries in caches: rules of robots.txt files, tags by URL.", int64(size.Entries), prometheus.Labels{"cache": name})
	}
	origins, bytes := w.Snapshots()
	send(gauge, "robotsgate_snapshot_origins", "Origins with a snapshot in the store.", origins, nil)
	send(gauge, "robotsgate_snapshot_bytes", "Size of all snapshots in the store.", bytes, nil)
	send(gauge, "robotsgate_snapshot_save_failing", "1 while snapshots can't be saved in the store, and stay in memory.", flag(w.SaveError() != nil), nil)
	send(counter, "robotsgate_audit_lost_records_total", "Audit records that could not be written.", w.Lost(), nil)
	send(gauge, "robotsgate_pace_waiting", "Requests that wait for their turn at an origin.", int64(w.Waiting()), nil)
	send(gauge, "robotsgate_ca_expiry_timestamp_seconds", "When the CA's certificate expires.", w.CAEnds().Unix(), nil)
	if w.Fleet != nil {
		collectFleet(w.Fleet(), send)
	}
	if w.Evidence != nil {
		collectEvidence(w.Evidence(), send)
	}
}

func collectFleet(s fleet.Status, send sender) {
	const gauge, counter = prometheus.GaugeValue, prometheus.CounterValue
	send(gauge, "robotsgate_fleet_up", "1 if the fleet's store can be used, 0 while this gate goes on alone.", flag(s.State == fleet.Connected), nil)
	send(gauge, "robotsgate_fleet_gates", "Gates of the fleet that were seen last, with this one.", int64(s.Gates), nil)
	send(counter, "robotsgate_fleet_calls_total", "Calls of the fleet's store.", int64(s.Calls), nil)
	send(counter, "robotsgate_fleet_failures_total", "Calls of the fleet's store that failed.", int64(s.Failures), nil)
	send(counter, "robotsgate_fleet_rejected_total", "Values in the fleet's store that were not authentic, or out of bounds.", int64(s.Rejected), nil)
}

func collectEvidence(s audit.Status, send sender) {
	const gauge, counter = prometheus.GaugeValue, prometheus.CounterValue
	send(gauge, "robotsgate_audit_not_continued", "1 if the audit log could not be continued at the start, so that a new one has begun.", flag(s.Broken != ""), nil)
	send(gauge, "robotsgate_audit_checkpoint_failing", "1 while the audit log gets no checkpoint, since data_dir can't be written.", flag(s.Error != ""), nil)
	send(gauge, "robotsgate_audit_checkpoint_records", "Records that the last checkpoint of the audit log covers.", s.Size, nil)
}

func flag(set bool) int64 {
	if set {
		return 1
	}
	return 0
}
