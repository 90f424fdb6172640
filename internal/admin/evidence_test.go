package admin

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/internal/audit"
)

// TestEvidence: the page and the API have the audit log, its key if there is one.
func TestEvidence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the page says how long ago things were
		s := audit.Status{
			Name: "crawl.example/gate", Key: "crawl.example/gate+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k",
			Size: 12345, Checkpoint: time.Now().Add(-3 * time.Second),
		}
		h := listener(t, &origin{status: 200, body: rules, log: func() audit.Status { return s }})
		for _, path := range []string{"/", "/live"} {
			page := see(t, h, path)
			has(t, page, "Audit log crawl.example/gate Its verifier key, to publish: "+s.Key,
				"Records in the last checkpoint 12 345 Last checkpoint 3 s ago")
			if strings.Contains(page, "Needs attention") {
				t.Errorf("%s has an alert", path)
			}
		}
		s.Error = "no space left"
		has(t, see(t, h, "/"), "The audit log gets no checkpoint, so its newest records are not signed: no space left Check the space and permissions of data_dir.")
		if got := alertKinds(t, h); got != "[checkpoint]" {
			t.Errorf("the API has the alerts %s", got)
		}
		s.Error, s.Broken, s.Checkpoint = "", "records were removed", time.Time{}
		has(t, see(t, h, "/"), "Needs attention: 1",
			"The audit log could not be continued at the start, so a new one has begun: crawl.example/gate records were removed",
			"New, since the one before could not be continued crawl.example/gate", "Last checkpoint none since the start")

		if got := alertKinds(t, h); got != "[evidence]" {
			t.Errorf("the API has the alerts %s", got)
		}
		got := answers(t, h, "GET", "/api/overview")["evidence"].(map[string]any)
		if got["log"] != s.Name || got["key"] != s.Key || got["size"] != 12345.0 || got["broken"] != s.Broken || got["checkpoint"] != nil {
			t.Errorf("the API has %v", got)
		}
		without := listener(t, &origin{status: 200, body: rules})
		if page := see(t, without, "/"); strings.Contains(page, "Audit log") {
			t.Error("the page of a gate without an audit log shows one")
		}
		if e, ok := answers(t, without, "GET", "/api/overview")["evidence"]; ok {
			t.Errorf("the API of a gate without an audit log has %v", e)
		}
	})
}
