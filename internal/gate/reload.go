package gate

import (
	"context"
	"errors"
	"reflect"
	"strings"

	"robotsgate/internal/config"
	"robotsgate/internal/store"
	"robotsgate/policy/snapshot"
	"robotsgate/proxy"
)

// A revision is a configuration that was read again.
type revision struct {
	config *Config
	err    error
}

// read returns the configurations that are read after each change, until ctx ends. It
// reads in a goroutine, so that a slow file system does not keep the gate from ending.
func (g *Gate) read(ctx context.Context) <-chan revision {
	revisions := make(chan revision)
	if g.options.File == nil {
		return revisions
	}
	go func() {
		for why := range g.options.File.changes(ctx) {
			g.log.Debug("the configuration is read again", "why", why)
			var r revision
			g.renewTrust()
			r.config, r.err = g.options.Load()
			select {
			case revisions <- r:
			case <-ctx.Done():
				return
			}
		}
	}()
	return revisions
}

// reload puts a revision in force, except for keys that need a restart. A revision with
// mistakes changes nothing. Only [Gate.wait] calls it.
func (g *Gate) reload(r revision) {
	old, kept := g.config, []string(nil)
	if r.err == nil && !r.config.source.Given("") && old.source.Given("") {
		// A full disk leaves an empty file. Its defaults would let every client in.
		r.err = errors.New("it holds no key any more; if the defaults are meant, write one of them, such as mode: enforce")
	}
	if r.err == nil {
		kept, r.err = g.change(r.config)
	}
	if r.err != nil {
		g.refuse(r.err)
		return
	}
	g.waiting.Store(nil)
	if len(kept) > 0 {
		g.waiting.Store(&kept)
		g.log.Warn("these keys have changed too, but only a restart puts them in force", "keys", strings.Join(kept, ", "))
	}
	for _, w := range r.config.Warnings() {
		g.log.Warn("configuration", "warning", w.Error())
	}
	g.metrics.Reload(true)
	g.mistakes.Store(nil)
	g.logSigning()
	g.log.Info("the configuration has been reloaded; requests in flight finish under the one before")
}

// renewTrust loads the CA from its files again.
func (g *Gate) renewTrust() {
	changed, err := g.authority.Reload()
	switch {
	case err != nil:
		g.log.Error("the CA's files can't be used, the CA before stays in force", "error", err)
	case changed:
		g.log.Info("certificates are signed by the CA's new files from now on; clients that trust only the one before must get the new one", "file", g.authority.CertFile())
	}
}

// refuse logs why the configuration in force stays.
func (g *Gate) refuse(err error) {
	g.metrics.Reload(false)
	mistakes := strings.Split(err.Error(), "\n")
	g.mistakes.Store(&mistakes)
	for _, m := range mistakes {
		g.log.Error("the changed configuration can't be used, the one before stays in force", "mistake", m)
	}
}

// change puts a configuration in force. It returns the keys that need a restart.
func (g *Gate) change(next *Config) (kept []string, err error) {
	old, upstream := g.config, g.upstream
	kept = config.Restrain(next, old)
	text, err := next.Effective()
	if err != nil {
		return nil, err
	}
	// With the same settings the connections to origins are kept. The contents of ca_file
	// may have changed.
	if next.Egress.CAFile != "" || !reflect.DeepEqual(next.Egress, old.Egress) {
		roots, err := Roots(next)
		if err != nil {
			return nil, err
		}
		if upstream, err = Upstream(next, roots, g.own, g.originConns); err != nil {
			return nil, err
		}
	}
	if g.fleet != nil {
		settings, err := fleetSettings(next)
		if err != nil {
			return nil, err
		}
		g.fleet.Use(settings)
	}
	before := g.upstream
	g.config, g.upstream = next, upstream
	g.level.Set(next.Log.Level)
	if g.options.Requests != nil {
		g.lines.Use(g.options.Requests(next))
	}
	g.engine = g.engine.Reconfigured(g.engineConfig())
	if err := g.proxy.Use(g.settings(text)); err != nil {
		return nil, err
	}
	if err := g.keepBudgets(next.Pace); err != nil {
		return nil, err
	}
	g.pacer.Use(next.Pace)
	g.administer()
	if upstream != before {
		before.Close() // requests in flight finish
	}
	return kept, nil
}

// settings returns the proxy's settings by the configuration in force. Its text is kept
// as evidence.
func (g *Gate) settings(text []byte) proxy.Settings {
	c := g.config
	s := proxy.Settings{
		Engine: g.engine, Upstream: g.wrapped(), Config: snapshot.Digest(string(text)),
		Passthrough: c.HTTPS.Unseen, Tags: c.Tags.Tags, LoadLimits: c.Limits.LoadLimits,
	}
	if err := store.KeepConfiguration(g.dir, text); err != nil {
		g.log.Error("the configuration can't be kept as evidence; check the space and permissions of its folder", "error", err, "sha256", s.Config)
	}
	if c.Pace.On() {
		s.Pacer = g.pacer
	}
	return s
}
