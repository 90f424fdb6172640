package admin

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/internal/fleet"
)

// TestFleet: the page and the API have the store's state and the gates, if there is a fleet. What other
// gates say of themselves is text from the network.
func TestFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the page says how long ago things were
		s := fleet.Status{
			Address: "redis://valkey.lan:6379", State: fleet.Connected, Since: time.Now().Add(-90 * time.Second),
			Calls: 12345, Latency: 0.00042, Failures: 3, Rejected: 2,
			Gates: []fleet.Gate{
				{ID: "a", Version: "v1.2.3", Config: "0123456789abcdef", Started: time.Now().Add(-time.Hour), Self: true},
				{ID: "<b>", Version: "v1\u202e", Config: strings.Repeat("x", 1000)},
			},
		}
		h := listener(t, &origin{status: 200, body: rules, fleet: func() fleet.Status { return s }})
		for _, path := range []string{"/", "/live"} {
			page := see(t, h, path)
			has(t, page, "Fleet Connected redis://valkey.lan:6379 since 1 min 30 s ago",
				"Gates 2 Calls of the store 12 345 Time of a call 0.42 ms Failures 3 Rejected values 2",
				"a (this one) v1.2.3 0123456789abcdef 1 h ago", "<b> v1\\u202e "+strings.Repeat("x", maxText)+"…")
			if strings.Contains(page, "Needs attention") || strings.Contains(page, "Different configurations") {
				t.Errorf("%s has an alert", path)
			}
		}
		got := answers(t, h, "GET", "/api/overview")["fleet"].(map[string]any)
		if gates := got["gates"].([]any); len(gates) != 2 || got["state"] != "connected" || got["calls"] != 12345.0 || got["latency"] != 0.00042 || got["configurations_differ"] != false {
			t.Errorf("the API has %v", got)
		}

		alone := listener(t, &origin{status: 200, body: rules})
		if page := see(t, alone, "/"); strings.Contains(page, "Fleet") {
			t.Error("the page of a gate without a fleet shows one")
		}
		if f, ok := answers(t, alone, "GET", "/api/overview")["fleet"]; ok {
			t.Errorf("the API of a gate without a fleet has %v", f)
		}
	})
}

// TestFleetAlerts: a store that is away, and different configurations, need attention.
func TestFleetAlerts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the page says how long ago things were
		s := fleet.Status{
			Address: "redis://valkey.lan:6379", State: fleet.Away, Since: time.Now().Add(-10 * time.Second), Error: "connection refused\u202e", Differ: true,
			Gates: []fleet.Gate{{ID: "a", Version: "v1", Config: "1", Self: true}, {ID: "b", Version: "v2", Config: "2"}},
		}
		h := listener(t, &origin{status: 200, body: rules, fleet: func() fleet.Status { return s }})
		has(t, see(t, h, "/"), "Needs attention: 2 The fleet's store is away, for 10 s. This gate goes on alone: connection refused\\u202e Check the store",
			"The gates of the fleet have different configurations: a: configuration 1, version v1 b: configuration 2, version v2 Give all gates",
			"Fleet Store away redis://valkey.lan:6379 since 10 s ago connection refused", "Different configurations")
		if got := alertKinds(t, h); got != "[fleet configurations]" {
			t.Errorf("the API has the alerts %s", got)
		}
	})
}
