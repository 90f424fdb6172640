package gate

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"

	"robotsgate/internal/field"
	"robotsgate/internal/fleet"
	"robotsgate/policy/snapshot"
)

// openFleet joins the fleet of the configuration, if there is one.
func (g *Gate) openFleet() (err error) {
	c := g.config
	if !c.Fleet.On() {
		return nil
	}
	var o fleet.Options
	if o.Key, err = c.Fleet.ReadKey(); err != nil {
		return &field.Error{Field: "fleet.key_file", Err: err}
	}
	roots, err := fleetRoots(c)
	if err != nil {
		return err
	}
	if o.Settings, err = fleetSettings(c, roots); err != nil {
		return err
	}
	o.Local, o.Log = g.store, g.log
	o.Gate, o.Version, o.Observe = g.id, g.options.Version, g.metrics.FleetCall
	if g.fleet, err = fleet.Open(o); err != nil {
		return &field.Error{Field: "fleet.address", Err: err}
	}
	return nil
}

// snapshotStore returns the store of the engine.
func (g *Gate) snapshotStore() snapshot.Store {
	if g.fleet != nil {
		return g.fleet
	}
	return g.store
}

// fleetSettings returns what may change while the gate runs.
func fleetSettings(c *Config, roots *x509.CertPool) (s fleet.Settings, err error) {
	s = fleet.Settings{Config: c.Fleet, Roots: roots, StaleFor: c.Robots.StaleFor}
	s.Hash, err = c.FleetHash()
	return s, err
}

// fleetRoots reads the roots for the certificate of the fleet's store; nil stands for the system's.
func fleetRoots(c *Config) (*x509.CertPool, error) {
	pool, err := c.Fleet.ReadRoots()
	if err != nil {
		return nil, &field.Error{Field: "fleet.ca_file", Err: err}
	}
	return pool, nil
}

// changeFleet puts the keys in force that need no restart.
func (g *Gate) changeFleet(r revision) error {
	if g.fleet == nil {
		return nil
	}
	s, err := fleetSettings(r.config, r.fleetRoots)
	if err == nil {
		g.fleet.Use(s)
	}
	return err
}

// FleetHash returns a hash of what should be equal in all gates of a fleet. It leaves out the
// addresses, names of files, limits and logs of one machine, and secrets.
func (c *Config) FleetHash() (string, error) {
	d, own := *c, DefaultConfig()
	d.Listen, d.ListenTransparent, d.DataDir, d.Admin, d.Log, d.Limits = own.Listen, own.ListenTransparent, own.DataDir, own.Admin, own.Log, own.Limits
	d.HTTPS.CACert, d.HTTPS.CAKey, d.Egress.CAFile = "", "", ""
	d.Fleet.Address, d.Fleet.KeyFile, d.Fleet.CAFile = "", "", ""
	text, err := d.Effective()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8]), nil
}
