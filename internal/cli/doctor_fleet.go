package cli

import (
	"context"

	"robotsgate/internal/config"
	"robotsgate/internal/fleet"
	"robotsgate/internal/settings"
)

// checkFleet checks the store of the fleet, if the configuration names one.
func checkFleet(ctx context.Context, c *config.Config) (all []finding) {
	if !c.Fleet.On() {
		return nil
	}
	o := settings.Fleet(c.Fleet)
	var err error
	if o.Key, err = config.ReadKey(c.Fleet.KeyFile); err != nil {
		return []finding{fault("fleet key", err.Error())}
	}
	if o.Roots, err = settings.FleetRoots(c.Fleet); err != nil {
		return []finding{fault("fleet store", err.Error())}
	}
	for _, f := range fleet.Check(ctx, o) {
		v := map[fleet.Verdict]verdict{fleet.Passed: passed, fleet.Warned: unknown, fleet.Failed: failed}[f.Verdict]
		all = append(all, finding{"fleet " + f.Subject, v, f.Text, f.Advice})
	}
	return all
}
