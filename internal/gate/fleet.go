package gate

import (
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
	if o.Settings, err = fleetSettings(c); err != nil {
		return err
	}
	o.Local, o.Log, o.Gate = g.store, g.log, g.id
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
func fleetSettings(c *Config) (fleet.Settings, error) {
	roots, err := c.Fleet.ReadRoots()
	if err != nil {
		return fleet.Settings{}, fmt.Errorf("fleet.ca_file: %w", err)
	}
	return fleet.Settings{Config: c.Fleet, Roots: roots, StaleFor: c.Robots.StaleFor}, nil
}
