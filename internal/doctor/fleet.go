package doctor

import (
	"context"

	"robotsgate/internal/fleet"
	"robotsgate/internal/gate"
)

// checkFleet checks the store of the fleet, if the configuration names one.
func checkFleet(ctx context.Context, c *gate.Config) (all []finding) {
	if !c.Fleet.On() {
		return nil
	}
	var err error
	o := fleet.Options{Settings: fleet.Settings{Config: c.Fleet}}
	if o.Key, err = c.Fleet.ReadKey(); err != nil {
		return []finding{fault("fleet key", err.Error())}
	}
	if o.Roots, err = c.Fleet.ReadRoots(); err != nil {
		return []finding{fault("fleet store", err.Error())}
	}
	for _, f := range fleet.Check(ctx, o) {
		v := map[fleet.Verdict]verdict{fleet.Passed: passed, fleet.Warned: unknown, fleet.Failed: failed}[f.Verdict]
		all = append(all, finding{"fleet " + f.Subject, v, f.Text, f.Advice})
	}
	return all
}
