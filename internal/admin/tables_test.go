package admin

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"robotsgate/policy"
	"robotsgate/policy/usage"
	"robotsgate/proxy"
)

// TestQueues: the page and the API have the origins for which requests wait, if there is a pace.
func TestQueues(t *testing.T) {
	var queues []Queue
	for i := range 30 {
		queues = append(queues, Queue{Origin: fmt.Sprintf("https://%d.example", i), Waiting: 30 - i, Longest: 1.25})
	}
	for name, c := range map[string]struct {
		queues func() []Queue
		page   string // what it has; "": nothing of it
		rows   int
	}{
		"no pace":  {nil, "", 0},
		"no queue": {func() []Queue { return nil }, "No request waits.", 0},
		"queues":   {func() []Queue { return queues }, `<a href="/origin?origin=https%3a%2f%2f0.example"><bdi>https://0.example</bdi></a></th><td class="n">30</td><td class="n">1.2</td>`, maxQueues},
	} {
		t.Run(name, func(t *testing.T) {
			h := listener(t, &origin{queues: c.queues})
			page := ask(h, http.MethodGet, "192.0.2.1:9310", "/").Body.String()
			if has := strings.Contains(page, "Waiting for their turn"); has != (c.page != "") || !strings.Contains(page, c.page) {
				t.Errorf("the page lacks %q:\n%s", c.page, page)
			}
			api := answers(t, h, http.MethodGet, "/api/overview")
			if rows := api["queues"].([]any); len(rows) != c.rows {
				t.Errorf("the API has %d queues, want %d", len(rows), c.rows)
			}
		})
	}
}

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

// TestExplainUsage: the explanation of a decision has what robots.txt states about the use of the URL.
func TestExplainUsage(t *testing.T) {
	h := listener(t, &origin{status: http.StatusOK, body: "User-agent: *\nContent-Usage: train-ai=n, <b>=y\nContent-Signal: search=yes\nLicense: https://a.example/l.xml\n"})
	page := ask(h, http.MethodGet, "192.0.2.1:9310", "/?url=http://a.example/x").Body.String()
	for _, want := range []string{
		`<bdi>search</bdi>: allowed <span class="quiet">by content-signal, line 3</span>`,
		`<dt>Licences</dt><dd><ul><li><bdi>https://a.example/l.xml</bdi></li></ul></dd>`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	api := answers(t, h, http.MethodGet, "/api/decision?url=http://a.example/x")
	if uses := api["usage"].([]any); len(uses) != 1 {
		t.Errorf("the API has %v", uses)
	}
}
