package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"time"

	"robotsgate/internal/admin"
	"robotsgate/internal/metrics"
	"robotsgate/policy"
)

// administer makes the pages of the admin listener.
func (g *gate) administer() {
	a := administration(g.config.Admin)
	a.Engine, a.Metrics, a.Ready = g.engine, g.metrics.Handler(), g.notReady
	g.oversee(&a)
	h := admin.New(a)
	g.pages.Store(&h)
}

// notReady returns why the gate serves no requests, nil if it does.
func (g *gate) notReady() error {
	if !g.ready.Load() {
		return errors.New("the gate is not serving yet, or is ending")
	}
	if g.auditFails != nil {
		if err := g.auditFails(); err != nil {
			return fmt.Errorf("the audit log can't be written (log.audit_required): %w", err)
		}
	}
	return nil
}

// maxAdminConns bounds the connections to the admin listener; who comes then waits.
const maxAdminConns = 500

func adminServer(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      15 * time.Second, // but for what waits for an origin, see admin.New
		IdleTimeout:       5 * time.Second,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// oversee adds what the status page shows.
func (g *gate) oversee(a *admin.Options) {
	engine := g.engine // a reload changes the field, and makes new pages
	a.Overview = g.overview
	a.Proxy = "http://" + g.listener.Addr().String()
	a.Connections = func() admin.Connections {
		c := g.proxy.Connections()
		return admin.Connections{Open: c.Open, Tunnels: c.Tunnels}
	}
	a.History = g.store.history()
	a.Sizes = func() []admin.Size { return g.sizes(engine) }
}

func (g *gate) sizes(engine *policy.Engine) []admin.Size {
	rules, tags := engine.Cached(), g.remembered.Size()
	return []admin.Size{
		{Name: "Rules in memory", Of: "origins", Entries: int64(rules.Entries), Bytes: rules.Bytes, Bound: rules.Bound},
		{Name: "Remembered tags", Of: "URLs", Entries: int64(tags.Entries), Bytes: tags.Bytes, Bound: tags.Bound},
		g.store.size(),
	}
}

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
