package gate

import (
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
	if o.Roots, err = settings.FleetRoots(c.Fleet); err != nil {
		return err
	}
	if o.Config, err = c.FleetHash(); err != nil {
		return err
	}
	o.Local, o.Robots, o.Log = g.store, settings.Robots(c.Robots), g.log
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

// changeFleet puts those keys in force that need no restart.
func (g *Gate) changeFleet(r revision) error {
	if g.fleet == nil {
		return nil
	}
	hash, err := r.config.FleetHash()
	if err != nil {
		return err
	}
	g.fleet.Use(r.config.Fleet.Timeout, r.fleetRoots, hash)
	return nil
}
