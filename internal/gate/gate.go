// Package gate connects the parts: it builds a gate from a configuration, runs it, and puts changed
// configurations in force.
package gate

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"robotsgate/internal/admin"
	"robotsgate/internal/audit"
	"robotsgate/internal/ca"
	"robotsgate/internal/fleet"
	"robotsgate/internal/metrics"
	"robotsgate/internal/record"
	"robotsgate/internal/requestlog"
	"robotsgate/internal/store"
	"robotsgate/policy"
	"robotsgate/policy/cache"
	"robotsgate/policy/pace"
	"robotsgate/proxy"
)

// A Gate is everything that runs. This file connects its parts.
type Gate struct {
	options    Options
	id         string  // see [ReadID]
	dir        string  // data_dir
	config     *Config // in force
	log        *slog.Logger
	level      *slog.LevelVar // of log
	authority  *ca.Authority
	clients    ca.ClientFiles // the files that make clients trust the CA
	release    func() error   // ends the ownership of data_dir; nil: another gate is its owner
	store      *store.Disk
	fleet      *fleet.Fleet // the store, shared with other gates; nil: there is no fleet
	engine     *policy.Engine
	remembered *cache.Tags
	tags       *store.LineFile[*cache.Page] // that are remembered; nil: none are kept
	upstream   *proxy.Transport
	pacer      *pace.Pacer                // of all configurations
	budgets    *store.LineFile[pace.Kept] // nil: none are kept
	proxy      *proxy.Proxy
	admin      *http.Server                 // nil if it is turned off
	pages      atomic.Pointer[http.Handler] // served by admin; a reload replaces it
	metrics    *metrics.Metrics
	overview   *admin.Overview
	redact     bool // records have no values of queries
	audit      *audit.Log
	lines      *requestlog.Lines        // nil: none
	auditFails func() error             // why the audit log can't be written; nil: requests do not depend on it
	mistakes   atomic.Pointer[[]string] // of the configuration that was refused last; nil: it was not refused
	waiting    atomic.Pointer[[]string] // keys that were changed, and that a restart puts in force; nil: none

	originConns   *proxy.OriginConns
	listener      net.Listener
	transparent   net.Listener // for redirected connections; nil: none
	adminListener net.Listener
	own           []netip.AddrPort // addresses of all; requests to them are refused
	ready         atomic.Bool
}

// Options are what a gate needs besides its configuration. Out and Err are required.
type Options struct {
	Out io.Writer // entries of the audit log, if its file is "-"
	Err io.Writer // the log

	Version, Commit string // of the program

	// Listener accepts clients, in place of the address in the configuration. Transparent accepts
	// connections that were redirected to the gate, see [proxy.Proxy.ServeTransparent]. Either may be
	// nil. The gate closes both, and refuses requests to their addresses if these are a host and a port.
	Listener, Transparent net.Listener

	File *WatchedFile            // of the configuration; nil: it is never read again
	Load func() (*Config, error) // reads File again

	Requests func(*Config) requestlog.Requests // which requests get a line; nil: none
	Screen   *requestlog.Screen                // for these lines and the log; nil: the lines go to the log

	Observe func(*record.Record)                // called for each request that is over; may be nil
	Wrap    func(proxy.Upstream) proxy.Upstream // returns what sends requests in place of the gate's transport; may be nil
}

// New builds a gate and opens its ports, so that every mistake is reported before the gate serves a
// request.
func New(c *Config, o Options) (_ *Gate, err error) {
	g := &Gate{options: o, listener: o.Listener, transparent: o.Transparent, config: c, metrics: metrics.New(), overview: admin.NewOverview(), redact: c.Log.Audit.RedactQuery, level: new(slog.LevelVar)}
	g.level.Set(c.Log.Level)
	g.log = g.logger()
	redirectStdLog(g.log)
	g.originConns = &proxy.OriginConns{}
	defer func() {
		if err != nil {
			g.Close()
		}
	}()
	dir, err := DataDir(c)
	if err != nil {
		return nil, err
	}
	g.dir = dir
	// The ports come first: a gate that is started twice by mistake reports nothing else.
	if err := g.listen(); err != nil {
		return nil, err
	}
	if err := g.openTrust(dir); err != nil {
		return nil, err
	}
	if err := g.openStores(dir); err != nil {
		return nil, err
	}
	if err := g.openEngine(); err != nil {
		return nil, err
	}
	if err := g.openAudit(dir, o.Out); err != nil {
		return nil, err
	}
	if err := g.wire(); err != nil {
		return nil, err
	}
	g.showRequests()
	g.logSigning()
	return g, nil
}

// openStores opens the snapshots and the store of the fleet.
func (g *Gate) openStores(dir string) error {
	if err := g.openStore(dir); err != nil {
		return err
	}
	if g.id = newID(); g.owner() {
		g.id = ownID(dir, g.log)
	}
	return g.openFleet()
}

// openEngine makes what decides, and the transport to origins.
func (g *Gate) openEngine() (err error) {
	c := g.config
	g.pacer = g.newPacer()
	if err := g.keepBudgets(c.Pace); err != nil {
		return err
	}
	pool, err := Roots(c)
	if err != nil {
		return err
	}
	if g.upstream, err = Upstream(c, pool, g.own, g.originConns); err != nil {
		return err
	}
	if g.engine, err = policy.New(g.engineConfig()); err != nil {
		return err
	}
	if g.fleet != nil {
		g.fleet.Start(g.engine.Snapshots(), g.pacer.Recent)
	}
	return nil
}

// wire makes the parts that work on requests, and connects them.
func (g *Gate) wire() (err error) {
	c := g.config
	if err := g.openRemembered(); err != nil {
		return err
	}
	text, err := c.Effective()
	if err != nil {
		return err
	}
	o := proxy.Options{Settings: g.settings(text), Limits: c.Limits.Limits}
	o.Remembered, o.Log, o.OriginConns = g.remembered, g.log, g.originConns
	o.Leaf, o.CA = g.authority.Leaf, g.authority.PEM
	roots, _, _ := ca.SystemRoots() // openTrust has warned of an error
	o.Bundle = func() []byte { return g.authority.Bundle(roots) }
	o.Done = g.done
	if address := g.AdminAddress(); address != "" {
		o.StatusPage = "http://" + address + "/"
	}
	if c.Log.Audit.Required {
		g.auditFails = g.audit.Err
		o.Ready = g.auditFails
	}
	if g.proxy, err = proxy.New(o); err != nil {
		return err
	}
	g.watchMetrics()
	if g.adminListener != nil {
		g.administer()
		g.admin = adminServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*g.pages.Load()).ServeHTTP(w, r) }), g.log)
	}
	return nil
}

// done records a request that is over.
func (g *Gate) done(x *record.Record) {
	if g.redact {
		x.Redact()
	}
	if g.options.Observe != nil {
		g.options.Observe(x)
	}
	g.lines.Add(x)
	g.metrics.Request(x)
	g.overview.Request(x)
	g.audit.Write(x)
}

func (g *Gate) engineConfig() policy.Config {
	c := EngineConfig(g.config, g.fetching(), g.snapshotStore(), g.log, g.metrics.Fetch)
	c.Agent, c.Shared = UserAgent(g.options.Version), g.fleet != nil
	g.sign(c.Crawlers)
	return c
}

// wrapped returns what sends requests and the fetches of robots.txt.
func (g *Gate) wrapped() proxy.Upstream {
	if g.options.Wrap == nil {
		return g.upstream
	}
	return g.options.Wrap(g.upstream)
}

// Run serves until ctx ends, then lets requests in flight finish.
func (g *Gate) Run(ctx context.Context) error {
	limitMemory(g.log, memlimit.FromCgroup, g.config.Limits.Memory)
	g.ready.Store(true) // the ports accept connections already
	failed := make(chan error, 3)
	go func() { failed <- g.proxy.Serve(g.listener) }()
	if g.transparent != nil {
		go func() { failed <- g.proxy.ServeTransparent(g.transparent) }()
	}
	if g.admin != nil {
		go func() { failed <- g.admin.Serve(g.adminListener) }()
	}
	err := g.wait(ctx, failed)
	g.ready.Store(false)
	if err == nil && g.config.Limits.ShutdownDelay > 0 {
		g.log.Info("not ready any more; still accepting for a while", "delay", g.config.Limits.ShutdownDelay)
		time.Sleep(g.config.Limits.ShutdownDelay)
	}
	g.pacer.Close()
	grace, cancel := context.WithTimeout(context.Background(), g.config.Limits.ShutdownGrace)
	defer cancel()
	if late := g.proxy.Shutdown(grace); late != nil {
		g.log.Warn("some requests were still in flight at the end of limits.shutdown_grace and are cut off", "grace", g.config.Limits.ShutdownGrace)
	}
	g.Close()
	return err
}

// wait returns when ctx ends, or with the error of a listener. Until then it puts changed
// configurations in force.
func (g *Gate) wait(ctx context.Context, failed <-chan error) error {
	revisions := g.read(ctx)
	for {
		select {
		case r := <-revisions:
			g.reload(r)
		case <-ctx.Done():
			return nil
		case err := <-failed:
			return err
		}
	}
}

// Close closes what New has opened, also after an error in it.
func (g *Gate) Close() {
	g.lines.Close()
	if g.admin != nil {
		g.admin.Close()
	}
	if g.engine != nil {
		g.engine.Close()
	}
	if g.fleet != nil {
		g.fleet.Close()
	}
	g.budgets.Close()
	g.tags.Close()
	if g.upstream != nil {
		g.upstream.Close()
	}
	for _, l := range []net.Listener{g.listener, g.transparent, g.adminListener} {
		if l != nil {
			l.Close()
		}
	}
	if g.store != nil {
		g.store.Close()
	}
	if err := g.audit.Close(); err != nil {
		g.log.Error("closing the audit log", "error", err)
	}
	if g.owner() {
		g.release() // the end of the process would do so too
	}
}

// Address returns the address on which the gate accepts clients.
func (g *Gate) Address() string {
	address := g.listener.Addr().String()
	// A listener on all addresses of IPv4 serves those of IPv6 too, and calls itself [::].
	host, _, _ := net.SplitHostPort(g.config.Listen)
	if _, port, err := net.SplitHostPort(address); err == nil && host == "0.0.0.0" {
		return net.JoinHostPort(host, port)
	}
	return address
}

// Transparent returns the listener for redirected connections; nil: there is none.
func (g *Gate) Transparent() net.Listener { return g.transparent }

// AdminAddress returns the address of the admin listener, "" if it is turned off.
func (g *Gate) AdminAddress() string {
	if g.adminListener == nil {
		return ""
	}
	return g.adminListener.Addr().String()
}

// Authority returns the CA.
func (g *Gate) Authority() *ca.Authority { return g.authority }

// ClientFiles returns the files that make clients trust the CA.
func (g *Gate) ClientFiles() ca.ClientFiles { return g.clients }
