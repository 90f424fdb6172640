package gate

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"time"

	"robotsgate/internal/admin"
	"robotsgate/internal/metrics"
	"robotsgate/policy"
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
	a.History = g.history
	if g.config.Pace.On() {
		a.Queues = g.pacer.Queues
	}
	if g.fleet != nil {
		a.Fleet = g.fleet.Status
	}
	a.Evidence = g.evidence()
	c := g.config      // as the engine below
	engine := g.engine // a reload changes the field, and makes new pages
	a.Alerts = func() []admin.Alert { return g.alerts(c, engine) }
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
		Socks:        g.proxy.SocksConnections,
		Rules:        g.engine.Snapshots().Cached,
		Tags:         g.remembered.Size,
		Snapshots:    func() (origins, bytes int64) { u := g.store.Usage(); return u.Origins, u.Bytes },
		SaveError:    g.engine.Snapshots().SaveError,
		Lost:         g.audit.Lost,
		Waiting:      g.pacer.Waiting,
		CAEnds:       func() time.Time { return g.authority.Certificate().NotAfter },
	}
	if g.fleet != nil {
		sources.Fleet = g.fleet.Status
	}
	sources.Evidence = g.evidence()
	g.metrics.Watch(sources)
}

// alerts returns the problems that an operator should solve. C is the configuration in force, with its engine.
func (g *Gate) alerts(c *Config, engine *policy.Engine) []admin.Alert {
	var all []admin.Alert
	add := func(kind, text, do string, details ...string) {
		all = append(all, admin.Alert{Kind: kind, Text: text, Details: details, Do: do})
	}
	if mistakes := g.mistakes.Load(); mistakes != nil {
		add("reload", "The changed configuration has mistakes, so the one before stays in force:",
			"Correct the file: the gate reads it again by itself. robotsgate validate checks it.", *mistakes...)
	}
	if keys := g.waiting.Load(); keys != nil {
		add("restart", "These keys have changed in the file, but only a restart puts them in force:",
			"Restart the gate when it suits you, or set the keys back.", *keys...)
	}
	expired := c.source.Warnings()
	for i := range c.Overrides {
		c.Overrides[i].WarnExpired(expired.In(fmt.Sprintf("overrides[%d]", i)))
	}
	if err := expired.Err(); err != nil {
		add("overrides", "Overrides have expired:", "Remove them from the configuration, or set a later expires.", strings.Split(err.Error(), "\n")...)
	}
	if w := g.authority.Warnings(); len(w) > 0 {
		add("ca", "The CA or its files need attention:", "Do what each line says; robotsgate ca --help has the details.", w...)
	}
	if err := g.audit.Err(); err != nil {
		add("audit", fmt.Sprintf("The audit log can't be written; records lost so far: %d", g.audit.Lost()),
			"Check the disk of log.audit and its permissions, or the reader of its pipe.", err.Error())
	}
	if err := engine.Snapshots().SaveError(); err != nil {
		add("snapshots", "Snapshots of robots.txt can't be saved, so that they stay in memory, and are lost at the end of the process:",
			"Check the space and permissions of data_dir. The gate tries again by itself.", err.Error())
	}
	return all
}
