package admin

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/internal/audit"
	"robotsgate/internal/evidence"
)

// TestEvidence: the page and the API have the audit log, its key and its witnesses, if there is one. What a witness
// answers is text from the network.
func TestEvidence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the page says how long ago things were
		s := audit.Status{
			Name: "crawl.example/gate", Key: "crawl.example/gate+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k",
			Size: 12345, Checkpoint: time.Now().Add(-3 * time.Second),
			Witnesses: []evidence.WitnessStatus{{Name: "good.example", URL: "https://good.example/log/", Size: 12340, Cosigned: time.Now().Add(-9 * time.Second), Cosignatures: 7}},
		}
		h := listener(t, &origin{status: 200, body: rules, log: func() audit.Status { return s }})
		for _, path := range []string{"/", "/live"} {
			page := see(t, h, path)
			has(t, page, "Audit log crawl.example/gate Its verifier key, to publish: "+s.Key,
				"Records in the last checkpoint 12 345 Last checkpoint 3 s ago Witnesses 1",
				"good.example cosigns https://good.example/log/ Has cosigned 12 340 records, the last time 9 s ago . Failed requests: 0.")
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
		s.Witnesses = append(s.Witnesses,
			evidence.WitnessStatus{Name: "bad.example", URL: "https://bad.example/", Size: 5, Failures: 2, Error: "its answer is <b>\u202e"},
			evidence.WitnessStatus{Name: "new.example", URL: "https://new.example/"})
		has(t, see(t, h, "/"), "Needs attention: 2",
			"The audit log could not be continued at the start, so a new one has begun: crawl.example/gate records were removed",
			`These witnesses do not cosign the audit log: bad.example: its answer is <b>\u202e Check the witness`,
			"New, since the one before could not be continued crawl.example/gate", "Last checkpoint none since the start",
			`bad.example does not cosign https://bad.example/ its answer is <b>\u202e Has cosigned 5 records. Failed requests: 2.`,
			"new.example no cosignature since the start https://new.example/ Has cosigned no record. Failed requests: 0.")

		if got := alertKinds(t, h); got != "[evidence witness]" {
			t.Errorf("the API has the alerts %s", got)
		}
		got := answers(t, h, "GET", "/api/overview")["evidence"].(map[string]any)
		if got["log"] != s.Name || got["key"] != s.Key || got["size"] != 12345.0 || got["broken"] != s.Broken || got["checkpoint"] != nil {
			t.Errorf("the API has %v", got)
		}
		good, bad := got["witnesses"].([]any)[0].(map[string]any), got["witnesses"].([]any)[1].(map[string]any)
		if good["name"] != "good.example" || good["url"] != "https://good.example/log/" || good["size"] != 12340.0 || good["cosigned"] != "1999-12-31T23:59:51Z" || good["error"] != nil {
			t.Errorf("the API has the witness %v", good)
		}
		if bad["error"] == nil || bad["failures"] != 2.0 || bad["cosigned"] != nil {
			t.Errorf("the API has the witness %v", bad)
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
