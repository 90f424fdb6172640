package cli

import (
	"runtime"
	"time"

	"robotsgate/internal/metrics"
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
		Snapshots:   func() (origins, bytes int64) { u := g.store.usage(); return u.Origins, u.Bytes },
		Lost:        g.audit.Lost,
		Failures:    g.descriptors.Failures,
		CAEnds:      func() time.Time { return g.authority.Certificate().NotAfter },
	})
}
