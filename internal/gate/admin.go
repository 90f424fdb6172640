package gate

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"time"

	"robotsgate/internal/admin"
	"robotsgate/internal/metrics"
)

// administer makes the pages of the admin listener, for the configuration in force.
func (g *Gate) administer() {
	a := admin.Options{Config: g.config.Admin, Version: g.options.Version}
	a.Engine, a.Metrics, a.Ready = g.engine, g.metrics.Handler(), g.notReady
	a.Overview = g.overview
	a.Proxy = "http://" + g.listener.Addr().String()
	a.Connections = func() admin.Connections {
		c := g.proxy.Connections()
		return admin.Connections{Open: c.Open, Tunnels: c.Tunnels}
	}
	if g.disk != nil {
		a.History, a.Body = g.history, g.disk.Body
	}
	if g.config.Pace.On() {
		a.Queues = g.queues
	}
	if g.fleet != nil {
		a.Fleet = g.fleet.Status
	}
	a.Evidence = g.evidence()
	c := g.config // as the engine below
	a.Alerts = func() []admin.Alert { return g.alerts(c) }
	engine := g.engine // a reload changes the field, and makes new pages
	a.Sizes = func() []admin.Size { return g.sizes(engine) }
	h := admin.New(a)
	g.pages.Store(&h)
}

// notReady returns why the gate does not serve requests, nil if it does.
func (g *Gate) notReady() error {
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

// maxAdminConns bounds the connections to the admin listener. Further connections wait.
const maxAdminConns = 500

func adminServer(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      15 * time.Second, // admin.New gives more time to requests that wait for an origin
		IdleTimeout:       5 * time.Second,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// watchMetrics gives the metrics their sources. A reload does not change them: engines
// share their caches.
func (g *Gate) watchMetrics() {
	sources := metrics.Sources{
		Build:        map[string]string{"version": g.options.Version, "revision": g.options.Commit, "goversion": runtime.Version()},
		Connections:  g.proxy.Connections,
		Redirections: g.proxy.Redirections,
		Logins:       g.proxy.LoginComparisons,
		Rules:        g.engine.Cached,
		Tags:         g.remembered.Size,
		Snapshots:    func() (origins, bytes int64) { u := g.store.Usage(); return u.Origins, u.Bytes },
		Lost:         g.audit.Lost,
		Failures:     g.descriptors.Failures,
		Waiting:      g.pacer.Waiting,
		CAEnds:       func() time.Time { return g.authority.Certificate().NotAfter },
	}
	if g.fleet != nil {
		sources.Fleet = g.fleet.Status
	}
	sources.Evidence = g.evidence()
	g.metrics.Watch(sources)
}
