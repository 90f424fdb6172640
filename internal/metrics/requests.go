package metrics

import (
	"robotsgate/internal/record"
	"robotsgate/policy"
)

// Values of the label "decision".
const (
	allowed  = "allow"
	denied   = "deny"
	reported = "reported" // would be denied, but report mode let the request through
	none     = "none"     // no decision: malformed, prohibited, a name that does not resolve
)

// decision counts a request by its decision, reason and crawler.
func (m *Metrics) decision(x *record.Record) {
	decision, reason := none, none
	if x.Decision != "" {
		decision, reason = x.Decision, x.Reason
		if x.Reported() {
			decision = reported
		}
	}
	if _, ok := m.prepared.Load(x.Crawler); !ok {
		m.prepare(x.Crawler)
	}
	m.requests.WithLabelValues(decision, reason, x.Crawler).Inc()
}

// prepare makes the counters of a crawler before its first request is counted, see [Metrics.counters].
func (m *Metrics) prepare(crawler string) {
	m.requests.WithLabelValues(none, none, crawler)
	if crawler != "" {
		for _, reason := range []policy.Reason{policy.ByRule, policy.NoMatch, policy.NoGroup, policy.IsUnavailable, policy.Implicit, policy.ByOverride} {
			m.requests.WithLabelValues(allowed, string(reason), crawler)
		}
		for _, reason := range []policy.Reason{policy.ByRule, policy.IsUnreachable, policy.TooComplex, policy.ByOverride, policy.ByUsage} {
			m.requests.WithLabelValues(denied, string(reason), crawler)
			m.requests.WithLabelValues(reported, string(reason), crawler)
		}
	}
	m.prepared.Store(crawler, true)
}
