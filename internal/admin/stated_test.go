package admin

import (
	"net/http"
	"strings"
	"testing"

	"robotsgate/policy"
	"robotsgate/policy/usage"
	"robotsgate/proxy"
)

// TestStated: the page and the API have the origins by what they state, if any does.
func TestStated(t *testing.T) {
	for name, c := range map[string]struct {
		stated usage.Stated
		page   string // what it has; "": nothing of it
		rows   int
	}{
		"nothing":       {},
		"a reservation": {usage.Stated{Preferences: []usage.Preference{{Category: "train-ai"}, {Category: "<b>", Allowed: true}}}, `<tr><th scope="row">train-ai</th><td class="n">1</td><td class="n">0</td></tr>`, 2},
	} {
		t.Run(name, func(t *testing.T) {
			x := &proxy.Record{Origin: "http://a.example", URL: "http://a.example/", Decision: &policy.Decision{Allow: true}, Stated: c.stated}
			h := listener(t, &origin{seen: seen(x)})
			page := ask(h, http.MethodGet, "192.0.2.1:9310", "/").Body.String()
			if has := strings.Contains(page, "about the use of their content"); has != (c.page != "") || !strings.Contains(page, c.page) {
				t.Errorf("the page lacks %q:\n%s", c.page, page)
			}
			api := answers(t, h, http.MethodGet, "/api/overview")
			if rows := api["usage_stated"].([]any); len(rows) != c.rows {
				t.Errorf("the API has %d categories, want %d", len(rows), c.rows)
			}
		})
	}
}
