package admin

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"robotsgate/internal/record"
)

// TestNoAlerts: without a problem the page has no strip, and the API an empty list.
func TestNoAlerts(t *testing.T) {
	h := listener(t, &origin{status: 200, body: rules})
	if page := see(t, h, "/"); strings.Contains(page, "Needs attention") {
		t.Error("the page shows alerts")
	}
	if all, ok := answers(t, h, "GET", "/api/overview")["alerts"].([]any); !ok || len(all) != 0 {
		t.Errorf("alerts: got %v, want an empty list", all)
	}
}

// alertKinds returns the kinds of the alerts in the API.
func alertKinds(t *testing.T, h http.Handler) string {
	t.Helper()
	var kinds []any
	for _, a := range answers(t, h, "GET", "/api/overview")["alerts"].([]any) {
		kinds = append(kinds, a.(map[string]any)["kind"])
	}
	return fmt.Sprint(kinds)
}

// TestAlerts: the page, the part for its script, and the API have every kind of alert.
func TestAlerts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the page says how long ago things were
		o := &origin{status: 503, alerts: []Alert{{Kind: "reload", Text: "It <b>failed</b>:", Details: []string{"gate.yaml:2: field \u202etttl"}, Do: "Correct it."}}}
		for i := range 30 {
			o.alerts[0].Details = append(o.alerts[0].Details, fmt.Sprint("mistake ", i))
		}
		o.seen = seen(&record.Record{ID: "ABC", Refused: record.ByLogin, Client: "192.0.2.77"}, &record.Record{Refused: record.ByLogin},
			&record.Record{Refused: record.ByGuard, Client: "192.0.2.78"})
		h := listener(t, o)
		ask(h, "GET", "192.0.2.1:9310", "/api/decision?url=http://down.example/")
		for _, path := range []string{"/", "/live"} {
			page := see(t, h, path)
			has(t, page, "Needs attention: 3 It <b>failed</b>:", `gate.yaml:2: field \u202etttl`, "mistake 8 and 21 more Correct it.",
				"their client is none of the crawlers: 2 Give the client the login",
				"so all requests to them are denied: http://down.example, for 0 s: ", "the origin answered 503 Check the network",
				"2 refused: unknown client", ", client 192.0.2.77, id ABC")
			if strings.Contains(page, "192.0.2.78") {
				t.Errorf("%s names a client that is a crawler", path)
			}
			if strings.Contains(page, "<b>") {
				t.Errorf("%s: a text has become markup", path)
			}
		}
		if got := alertKinds(t, h); got != "[reload logins unreachable]" {
			t.Errorf("the API has the alerts %s", got)
		}
		if got := answers(t, h, "GET", "/api/refusal?id=ABC")["client"]; got != "192.0.2.77" {
			t.Errorf("/api/refusal has the client %v", got)
		}
	})
}
