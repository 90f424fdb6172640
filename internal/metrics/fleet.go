package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"robotsgate/internal/fleet"
)

// From a store on the same machine, some 100 µs, to the longest fleet.timeout.
var fleetTimes = []float64{100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 100e-3, 250e-3, 1, 5}

// newFleetCalls returns the histogram that [Metrics.Watch] registers if there is a fleet.
func newFleetCalls() prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{Name: "robotsgate_fleet_call_seconds", Help: "Duration of calls of the fleet's store that were answered.", Buckets: fleetTimes})
}

// FleetCall counts a call of the fleet's store that was answered.
func (m *Metrics) FleetCall(took time.Duration) { m.fleetCalls.Observe(took.Seconds()) }

func collectFleet(s fleet.Status, send func(kind prometheus.ValueType, name, help string, value int64)) {
	const gauge, counter = prometheus.GaugeValue, prometheus.CounterValue
	var up, differ int64
	if s.State == fleet.Connected {
		up = 1
	}
	if s.Differ {
		differ = 1
	}
	send(gauge, "robotsgate_fleet_up", "1 if the fleet's store can be used, 0 while this gate goes on alone.", up)
	send(gauge, "robotsgate_fleet_gates", "Gates of the fleet that were seen last, with this one.", int64(len(s.Gates)))
	send(counter, "robotsgate_fleet_calls_total", "Calls of the fleet's store.", int64(s.Calls))
	send(counter, "robotsgate_fleet_failures_total", "Calls of the fleet's store that failed.", int64(s.Failures))
	send(counter, "robotsgate_fleet_rejected_total", "Values in the fleet's store that were not authentic, or out of bounds.", int64(s.Rejected))
	send(gauge, "robotsgate_fleet_configurations_differ", "1 if the gates of the fleet have different configurations.", differ)
}
