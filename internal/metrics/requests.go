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

// requests counts requests by decision, reason and crawler.
type requests struct {
	vec      *prometheus.CounterVec
	crawlers sync.Map // names of the crawlers that have counters
}

func newRequests(vec *prometheus.CounterVec) *requests {
	r := &requests{vec: vec}
	r.prepare("") // requests for which the crawler was not identified
	return r
}

func (r *requests) count(x *proxy.Record) {
	if _, ok := r.crawlers.Load(x.Crawler); !ok {
		r.prepare(x.Crawler)
	}
	decision, reason := none, none
	if d := x.Decision; d != nil {
		reason = string(d.Reason)
		switch {
		case d.Allow:
			decision = allowed
		case d.Enforced:
			decision = denied
		default:
			decision = reported
		}
	}
	r.vec.WithLabelValues(decision, reason, x.Crawler).Inc()
}

// prepare makes the counters of a crawler before its first request is counted: Prometheus
// computes rates from increases, and sees none in a counter that begins at 1.
func (r *requests) prepare(crawler string) {
	r.vec.WithLabelValues(none, none, crawler)
	if crawler != "" {
		for _, reason := range []policy.Reason{policy.ByRule, policy.NoMatch, policy.NoGroup, policy.IsUnavailable, policy.Implicit, policy.ByOverride} {
			r.vec.WithLabelValues(allowed, string(reason), crawler)
		}
		for _, reason := range []policy.Reason{policy.ByRule, policy.IsUnreachable, policy.TooComplex, policy.ByOverride} {
			r.vec.WithLabelValues(denied, string(reason), crawler)
			r.vec.WithLabelValues(reported, string(reason), crawler)
		}
	}
	r.crawlers.Store(crawler, true)
}
