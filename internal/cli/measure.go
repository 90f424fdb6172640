package cli

import (
	"runtime"
	"time"

	"robotsgate/internal/metrics"
	"robotsgate/internal/store"
)

// measure tells the metrics where to look. What it names stays the same through
// every reload: engines share what they know.
func (g *gate) measure() {
	g.authority.OnLeaf = g.metrics.Leaf
	g.metrics.Watch(metrics.Sources{
		Build:       metrics.Build{Version: version(), Revision: commit(), Go: runtime.Version()},
		Connections: g.proxy.Connections,
		Logins:      g.proxy.LoginComparisons,
		Rules:       g.engine.Cached,
		Tags:        g.remembered.Size,
		Snapshots:   func() (origins, bytes int64) { return kept(g.store) },
		Lost:        g.audit.Lost,
		Failures:    g.descriptors.Failures,
		CAEnds:      func() time.Time { return g.authority.Certificate().NotAfter },
	})
}

// kept returns how many origins a store knows of, and the bytes it takes.
func kept(s any) (origins, bytes int64) {
	if sized, ok := s.(interface{ Usage() store.Usage }); ok {
		u := sized.Usage()
		return u.Origins, u.Bytes
	}
	return 0, 0
}
