package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"robotsgate/internal/audit"
)

func collectEvidence(s audit.Status, send func(kind prometheus.ValueType, name, help string, value int64, labels prometheus.Labels)) {
	const gauge, counter = prometheus.GaugeValue, prometheus.CounterValue
	var broken int64
	if s.Broken != "" {
		broken = 1
	}
	send(gauge, "robotsgate_audit_not_continued", "1 if the audit log could not be continued at the start, so that a new one has begun.", broken, nil)
	send(gauge, "robotsgate_audit_checkpoint_records", "Records that the last checkpoint of the audit log covers.", s.Size, nil)
	for _, w := range s.Witnesses {
		name := prometheus.Labels{"witness": w.Name}
		for outcome, n := range map[string]int64{"cosigned": w.Cosignatures, "failed": w.Failures} {
			send(counter, "robotsgate_witness_requests_total", "Requests to a witness for a cosignature, by outcome: cosigned, failed.", n, prometheus.Labels{"witness": w.Name, "outcome": outcome})
		}
		send(gauge, "robotsgate_witness_cosigned_records", "Records in the last checkpoint that a witness has cosigned.", w.Size, name)
		if !w.Cosigned.IsZero() {
			send(gauge, "robotsgate_witness_cosigned_timestamp_seconds", "When a witness has cosigned last; absent until it has since the start.", w.Cosigned.Unix(), name)
		}
	}
}
