package gate

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"robotsgate/internal/ca"
)

// openTrust opens the CA and updates the files that make clients trust it.
func (g *Gate) openTrust(dir string) (err error) {
	if g.authority, err = OpenCA(g.config, dir); err != nil {
		return err
	}
	g.authority.OnLeaf = g.metrics.Leaf
	for _, w := range g.authority.Warnings() {
		g.log.Warn(w)
	}
	if g.clients, err = g.authority.WriteClientFiles(dir); errors.Is(err, ca.ErrNoRoots) {
		g.log.Warn("the bundle holds the gate's CA alone, so that clients trust no host that is passed through", "error", err)
		return nil
	}
	return err
}

// OpenCA opens the CA that a configuration names, or the one in dir, which it makes if there is none.
func OpenCA(c *Config, dir string) (*ca.Authority, error) {
	if c.HTTPS.CACert != "" {
		return ca.Load(c.HTTPS.CACert, c.HTTPS.CAKey)
	}
	return ca.Open(dir)
}

// logWarnings logs the warnings about the CA once a day, until ctx ends.
func logWarnings(ctx context.Context, a *ca.Authority, log *slog.Logger) {
	day := time.NewTicker(24 * time.Hour)
	defer day.Stop()
	for {
		select {
		case <-day.C:
			for _, w := range a.Warnings() {
				log.Warn(w)
			}
		case <-ctx.Done():
			return
		}
	}
}
