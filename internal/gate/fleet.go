package gate

import (
	"crypto/x509"
	"fmt"

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
		return fmt.Errorf("fleet.key_file: %w", err)
	}
	roots, err := fleetRoots(c)
	if err != nil {
		return err
	}
	o.Settings, o.Local, o.Log, o.Gate = fleetSettings(c, roots), g.store, g.log, g.id
	if g.fleet, err = fleet.Open(o); err != nil {
		return fmt.Errorf("fleet.address: %w", err)
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
func fleetSettings(c *Config, roots *x509.CertPool) fleet.Settings {
	return fleet.Settings{Config: c.Fleet, Roots: roots, StaleFor: c.Robots.StaleFor}
}

// fleetRoots reads the roots for the certificate of the fleet's store; nil stands for the system's.
func fleetRoots(c *Config) (*x509.CertPool, error) {
	pool, err := c.Fleet.ReadRoots()
	if err != nil {
		return nil, fmt.Errorf("fleet.ca_file: %w", err)
	}
	return pool, nil
}

// changeFleet puts the keys in force that need no restart.
func (g *Gate) changeFleet(r revision) {
	if g.fleet != nil {
		g.fleet.Use(fleetSettings(r.config, r.fleetRoots))
	}
}
