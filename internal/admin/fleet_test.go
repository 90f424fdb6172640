package admin

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/internal/audit"
	"robotsgate/internal/fleet"
)

// TestFleet: the page and the API have the store's state, if there is a fleet. A store that is away needs attention.
func TestFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the page says how long ago things were
		s := fleet.Status{Address: "redis://valkey.lan:6379", State: fleet.Connected, Since: time.Now().Add(-90 * time.Second), Calls: 12345, Failures: 3, Rejected: 2, Gates: 4}
		h := listener(t, &origin{status: 200, body: rules, fleet: func() fleet.Status { return s }})
		for _, path := range []string{"/", "/live"} {
			page := see(t, h, path)
			has(t, page, "Fleet Connected redis://valkey.lan:6379 since 1 min 30 s ago", "Gates 4 Calls of the store 12 345 Failures 3 Rejected values 2")
			if strings.Contains(page, "Needs attention") {
				t.Errorf("%s has an alert", path)
			}
		}
		got := answers(t, h, "GET", "/api/overview")["fleet"].(map[string]any)
		if got["gates"] != 4.0 || got["state"] != "connected" || got["calls"] != 12345.0 || got["failures"] != 3.0 || got["rejected"] != 2.0 {
			t.Errorf("the API has %v", got)
		}

		s.State, s.Error = fleet.Away, "connection refused\u202e"
		has(t, see(t, h, "/"), "Needs attention: 1 The fleet's store is away, for 1 min 30 s. This gate goes on alone: connection refused\\u202e Check the store", "Fleet Store away redis://valkey.lan:6379")
		if got := alertKinds(t, h); got != "[fleet]" {
			t.Errorf("the API has the alerts %s", got)
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

// TestEvidence: the page and the API have the audit log and its key, if there is one, and alerts for what is wrong with it.
func TestEvidence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the page says how long ago things were
		s := audit.Status{Name: "crawl.example/gate", Key: "crawl.example/gate+530d903a+AekyeRrm", Size: 12345, Checkpoint: time.Now().Add(-3 * time.Second)}
		h := listener(t, &origin{status: 200, body: rules, log: func() audit.Status { return s }})
		has(t, see(t, h, "/"), "Audit log crawl.example/gate Its verifier key, to publish: "+s.Key, "Records in the last checkpoint 12 345 Last checkpoint 3 s ago")
		if got := answers(t, h, "GET", "/api/overview")["evidence"].(map[string]any); got["log"] != s.Name || got["key"] != s.Key || got["size"] != 12345.0 {
			t.Errorf("the API has %v", got)
		}
		s.Error, s.Broken = "no space left", "records were removed"
		has(t, see(t, h, "/"), "The audit log gets no checkpoint, so its newest records are not signed: no space left",
			"The audit log could not be continued at the start, so a new one has begun: crawl.example/gate records were removed")
		if got := alertKinds(t, h); got != "[evidence checkpoint]" {
			t.Errorf("the API has the alerts %s", got)
		}
	})
}
