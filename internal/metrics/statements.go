package metrics

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"robotsgate/policy/usage"
)

// statements counts requests by what was stated about the use of the content. A publisher can name any
// category, so categories that mean nothing to the gate count as other.
type statements struct {
	counters [][2]prometheus.Counter // by category: y, n; the last is for all others
}

func newStatements(vec *prometheus.CounterVec) *statements {
	s := &statements{}
	for _, p := range usage.Purposes {
		s.counters = append(s.counters, [2]prometheus.Counter{vec.WithLabelValues(string(p), "y"), vec.WithLabelValues(string(p), "n")})
	}
	s.counters = append(s.counters, [2]prometheus.Counter{vec.WithLabelValues("other", "y"), vec.WithLabelValues("other", "n")})
	return s
}

// count counts a request once for each category. Of several statements n counts.
func (s *statements) count(stated usage.Stated) {
	if len(stated.Preferences) == 0 {
		return
	}
	const unknown, yes, no = 0, 1, 2
	values := make([]int, len(s.counters))
	for _, p := range stated.Preferences {
		i := slices.Index(usage.Purposes, usage.Purpose(p.Category))
		if i < 0 {
			i = len(values) - 1
		}
		if !p.Allowed {
			values[i] = no
		} else if values[i] == unknown {
			values[i] = yes
		}
	}
	for i, v := range values {
		if v != unknown {
			s.counters[i][v-yes].Inc()
		}
	}
}
