package metrics

import (
	"maps"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"robotsgate/policy"
	"robotsgate/proxy"
)

// What was decided, as a label says it.
const (
	allowed  = "allow"
	denied   = "deny"
	reported = "reported" // denied, but let through
	none     = "none"     // no decision: malformed, prohibited, a name that does not resolve
)

// requests counts them by decision, reason and crawler. A crawler's counters are
// looked up by its name alone, since looking for three labels costs more than counting.
type requests struct {
	vec *prometheus.CounterVec

	mu       sync.Mutex                          // of who adds a crawler
	crawlers atomic.Pointer[map[string]*counted] // replaced whole
}

// counted are the counters of one crawler, by what can be decided about it.
type counted struct {
	allowed, denied, reported map[policy.Reason]prometheus.Counter
	none                      prometheus.Counter
}

func newRequests(vec *prometheus.CounterVec) *requests {
	r := &requests{vec: vec}
	r.crawlers.Store(&map[string]*counted{})
	r.meet("") // whose requests nobody could be asked about
	return r
}

func (r *requests) count(x *proxy.Record) {
	c := (*r.crawlers.Load())[x.Crawler]
	if c == nil {
		c = r.meet(x.Crawler)
	}
	d := x.Decision
	if d == nil {
		c.none.Inc()
		return
	}
	by, decision := c.allowed, allowed
	if !d.Allow {
		by, decision = c.denied, denied
		if !d.Enforced {
			by, decision = c.reported, reported
		}
	}
	if n := by[d.Reason]; n != nil {
		n.Inc()
		return
	}
	r.vec.WithLabelValues(decision, string(d.Reason), x.Crawler).Inc()
}

// meet makes the counters of a crawler that asks for the first time: all at once,
// since Prometheus does not see what a counter that begins at 1 has counted.
func (r *requests) meet(name string) *counted {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := *r.crawlers.Load()
	if c := known[name]; c != nil {
		return c
	}
	c := &counted{none: r.vec.WithLabelValues(none, none, name)}
	if name != "" {
		c.allowed = r.reasons(allowed, name, policy.ByRule, policy.NoMatch, policy.NoGroup, policy.IsUnavailable, policy.Implicit, policy.ByOverride)
		c.denied = r.reasons(denied, name, policy.ByRule, policy.IsUnreachable, policy.TooComplex, policy.ByOverride)
		c.reported = r.reasons(reported, name, policy.ByRule, policy.IsUnreachable, policy.TooComplex, policy.ByOverride)
	}
	next := maps.Clone(known)
	next[name] = c
	r.crawlers.Store(&next)
	return c
}

func (r *requests) reasons(decision, crawler string, all ...policy.Reason) map[policy.Reason]prometheus.Counter {
	by := map[policy.Reason]prometheus.Counter{}
	for _, reason := range all {
		by[reason] = r.vec.WithLabelValues(decision, string(reason), crawler)
	}
	return by
}
