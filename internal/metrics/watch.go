package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"robotsgate/internal/audit"
	"robotsgate/internal/fleet"
	"robotsgate/policy"
	"robotsgate/proxy"
)

// Sources are functions that are called for each scrape, from several goroutines. None may be
// nil, except where a comment says otherwise.
type Sources struct {
	Build        map[string]string // what identifies the program, as labels
	Connections  func() proxy.Connections
	Redirections func() proxy.Redirections
	Logins       func() (right, wrong int64)         // passwords that were compared with a hash
	Rules        func() policy.Size                  // compiled robots.txt files in memory
	Tags         func() policy.Size                  // remembered robots tags
	Snapshots    func() (origins int64, bytes int64) // in the store
	Lost         func() int64                        // audit records that could not be written
	Failures     func() int64                        // see proxy.Descriptors
	Waiting      func() int                          // requests that wait for their turn
	CAEnds       func() time.Time                    // when the CA's certificate expires
	Fleet        func() fleet.Status                 // may be nil: the gate is in no fleet, and has no metrics of one
	Evidence     func() audit.Status                 // may be nil: there is no audit log
}

// Watch adds the sources to the metrics. It is called once.
func (m *Metrics) Watch(s Sources) {
	m.registry.MustRegister(watch{s})
	if s.Fleet != nil {
		m.registry.MustRegister(m.fleetCalls)
	}
}

type watch struct{ Sources }

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
	right, wrong := w.Logins()
	for result, n := range map[string]int64{"right": right, "wrong": wrong} {
		send(counter, "robotsgate_login_comparisons_total", "Passwords compared with a hash, by result. Each password is compared once, not once a request.", n, prometheus.Labels{"result": result})
	}
	for cache, size := range map[string]policy.Size{"rules": w.Rules(), "tags": w.Tags()} {
		send(gauge, "robotsgate_cache_bytes", "Memory used by caches: rules of robots.txt files, tags by URL.", size.Bytes, prometheus.Labels{"cache": cache})
		send(gauge, "robotsgate_cache_entries", "Entries in caches: rules of robots.txt files, tags by URL.", int64(size.Entries), prometheus.Labels{"cache": cache})
	}
	origins, bytes := w.Snapshots()
	send(gauge, "robotsgate_snapshot_origins", "Origins with a snapshot in the store.", origins, nil)
	send(gauge, "robotsgate_snapshot_bytes", "Size of all snapshots and their index in the store.", bytes, nil)
	send(counter, "robotsgate_audit_lost_records_total", "Audit records that could not be written.", w.Lost(), nil)
	send(counter, "robotsgate_resource_failures_total", "Connections that could not be opened or accepted because no file descriptor, local port or memory was left.", w.Failures(), nil)
	send(gauge, "robotsgate_pace_waiting", "Requests that wait for their turn at an origin.", int64(w.Waiting()), nil)
	send(gauge, "robotsgate_ca_expiry_timestamp_seconds", "When the CA's certificate expires.", w.CAEnds().Unix(), nil)
	if w.Fleet != nil {
		collectFleet(w.Fleet(), func(kind prometheus.ValueType, name, help string, value int64) { send(kind, name, help, value, nil) })
	}
	if w.Evidence != nil {
		collectEvidence(w.Evidence(), send)
	}
}
