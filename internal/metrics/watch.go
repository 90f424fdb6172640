package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"robotsgate/policy"
	"robotsgate/proxy"
)

// Build identifies the program.
type Build struct{ Version, Revision, Go string }

// Sources are functions that are called for each scrape, from several goroutines. None may be
// nil.
type Sources struct {
	Build       Build
	Connections func() proxy.Connections
	Logins      func() (right, wrong int64)         // passwords that were compared with a hash
	Rules       func() policy.Size                  // compiled robots.txt files in memory
	Tags        func() policy.Size                  // remembered robots tags
	Snapshots   func() (origins int64, bytes int64) // in the store
	Lost        func() int64                        // audit records that could not be written
	Failures    func() int64                        // see proxy.Descriptors
	CAEnds      func() time.Time                    // when the CA's certificate expires
}

// Watch adds the sources to the metrics. It is called once.
func (m *Metrics) Watch(s Sources) { m.registry.MustRegister(watch{s}) }

type watch struct{ Sources }

func described(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

var (
	buildDesc     = described("robotsgate_build_info", "The version of the program, as labels; the value is always 1.", "version", "revision", "goversion")
	openDesc      = described("robotsgate_connections", "Open client connections.")
	tunnelsDesc   = described("robotsgate_tunnels", "Open CONNECT tunnels.")
	refusedDesc   = described("robotsgate_connections_turned_away_total", "Connections refused because of a limit, by the key of the configuration that sets it.", "limit")
	loginsDesc    = described("robotsgate_login_comparisons_total", "Passwords compared with a hash, by result. Each password is compared once, not once a request.", "result")
	bytesDesc     = described("robotsgate_cache_bytes", "Memory used by caches: rules of robots.txt files, tags by URL.", "cache")
	entriesDesc   = described("robotsgate_cache_entries", "Entries in caches: rules of robots.txt files, tags by URL.", "cache")
	originsDesc   = described("robotsgate_snapshot_origins", "Origins with a snapshot in the store.")
	snapshotsDesc = described("robotsgate_snapshot_bytes", "Size of all snapshots and their index in the store.")
	lostDesc      = described("robotsgate_audit_lost_records_total", "Audit records that could not be written.")
	failuresDesc  = described("robotsgate_resource_failures_total", "Connections that could not be opened or accepted because no file descriptor, local port or memory was left.")
	endsDesc      = described("robotsgate_ca_expiry_timestamp_seconds", "When the CA's certificate expires.")
)

func (w watch) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{buildDesc, openDesc, tunnelsDesc, refusedDesc, loginsDesc, bytesDesc, entriesDesc, originsDesc, snapshotsDesc, lostDesc, failuresDesc, endsDesc} {
		ch <- d
	}
}

func (w watch) Collect(ch chan<- prometheus.Metric) {
	send := func(d *prometheus.Desc, t prometheus.ValueType, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, t, v, labels...)
	}
	send(buildDesc, prometheus.GaugeValue, 1, w.Build.Version, w.Build.Revision, w.Build.Go)
	conns := w.Connections()
	send(openDesc, prometheus.GaugeValue, float64(conns.Open))
	send(tunnelsDesc, prometheus.GaugeValue, float64(conns.Tunnels))
	for limit, n := range conns.Rejected {
		send(refusedDesc, prometheus.CounterValue, float64(n), limit)
	}
	right, wrong := w.Logins()
	send(loginsDesc, prometheus.CounterValue, float64(right), "right")
	send(loginsDesc, prometheus.CounterValue, float64(wrong), "wrong")
	for cache, size := range map[string]policy.Size{"rules": w.Rules(), "tags": w.Tags()} {
		send(bytesDesc, prometheus.GaugeValue, float64(size.Bytes), cache)
		send(entriesDesc, prometheus.GaugeValue, float64(size.Entries), cache)
	}
	origins, bytes := w.Snapshots()
	send(originsDesc, prometheus.GaugeValue, float64(origins))
	send(snapshotsDesc, prometheus.GaugeValue, float64(bytes))
	send(lostDesc, prometheus.CounterValue, float64(w.Lost()))
	send(failuresDesc, prometheus.CounterValue, float64(w.Failures()))
	send(endsDesc, prometheus.GaugeValue, float64(w.CAEnds().Unix()))
}
