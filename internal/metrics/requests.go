package metrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"robotsgate/policy"
	"robotsgate/proxy"
)

// Values of the label "decision".
const (
	allowed  = "allow"
	denied   = "deny"
	reported = "reported" // would be denied, but report mode let the request through
	none     = "none"     // no decision: malformed, prohibited, a name that does not resolve
)

// requests counts requests by decision, reason and crawler. The counters are kept in maps: to find
// one by three labels takes longer than to count.
type requests struct {
	vec      *prometheus.CounterVec
	crawlers sync.Map // map[outcome]prometheus.Counter by the name of the crawler
}

type outcome struct{ decision, reason string }

func newRequests(vec *prometheus.CounterVec) *requests {
	r := &requests{vec: vec}
	r.prepare("") // requests for which the crawler was not identified
	return r
}

func (r *requests) count(x *proxy.Record) {
	o := outcome{none, none}
	if d := x.Decision; d != nil {
		o.reason = string(d.Reason)
		switch {
		case d.Allow:
			o.decision = allowed
		case d.Enforced:
			o.decision = denied
		default:
			o.decision = reported
		}
	}
	prepared, ok := r.crawlers.Load(x.Crawler)
	if !ok {
		prepared = r.prepare(x.Crawler)
	}
	c, ok := prepared.(map[outcome]prometheus.Counter)[o]
	if !ok {
		c = r.vec.WithLabelValues(o.decision, o.reason, x.Crawler)
	}
	c.Inc()
}

// prepare makes the counters of a crawler before its first request is counted: Prometheus
// computes rates from increases, and sees none in a counter that begins at 1.
func (r *requests) prepare(crawler string) map[outcome]prometheus.Counter {
	outcomes := []outcome{{none, none}}
	if crawler != "" {
		for _, reason := range []policy.Reason{policy.ByRule, policy.NoMatch, policy.NoGroup, policy.IsUnavailable, policy.Implicit, policy.ByOverride} {
			outcomes = append(outcomes, outcome{allowed, string(reason)})
		}
		for _, reason := range []policy.Reason{policy.ByRule, policy.IsUnreachable, policy.TooComplex, policy.ByOverride, policy.ByUsage} {
			outcomes = append(outcomes, outcome{denied, string(reason)}, outcome{reported, string(reason)})
		}
	}
	prepared := map[outcome]prometheus.Counter{}
	for _, o := range outcomes {
		prepared[o] = r.vec.WithLabelValues(o.decision, o.reason, crawler)
	}
	r.crawlers.Store(crawler, prepared)
	return prepared
}
