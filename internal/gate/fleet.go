package gate

import (
	"crypto/x509"
	"fmt"

	"robotsgate/internal/config"
	"robotsgate/internal/fleet"
	"robotsgate/internal/settings"
	"robotsgate/policy"
)

// openFleet joins the fleet of the configuration, if there is one.
func (g *Gate) openFleet() (err error) {
	c := g.config
	if !c.Fleet.On() {
		return nil
	}
	o := settings.Fleet(c.Fleet)
	if o.Key, err = config.ReadKey(c.Fleet.KeyFile); err != nil {
		return fmt.Errorf("fleet.key_file: %w", err)
	}
	roots, err := settings.FleetRoots(c.Fleet)
	if err != nil {
		return err
	}
	if o.Settings, err = fleetSettings(c, roots); err != nil {
		return err
	}
	o.Local, o.Log = g.store, g.log
	o.Gate, o.Version, o.Observe = g.id, g.options.Version, g.metrics.FleetCall
	if g.fleet, err = fleet.Open(o); err != nil {
		return fmt.Errorf("fleet.address: %w", err)
	}
	return nil
}

// records returns the store of the engine.
func (g *Gate) records() policy.Store {
	if g.fleet != nil {
		return g.fleet
	}
	return g.store
}

// fleetSettings returns what may change while the gate runs.
func fleetSettings(c *config.Config, roots *x509.CertPool) (s fleet.Settings, err error) {
	s = fleet.Settings{Timeout: c.Fleet.Timeout, Roots: roots, StaleFor: c.Robots.StaleFor}
	s.Config, err = c.FleetHash()
	return s, err
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
