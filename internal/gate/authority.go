package gate

import (
	"errors"

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
