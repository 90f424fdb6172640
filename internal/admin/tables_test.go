package admin

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"robotsgate/policy/pace"
)

// TestTables: the page and the API have the origins for which requests wait, if there is a pace.
func TestTables(t *testing.T) {
	var queues []pace.Queue
	for i := range 30 {
		queues = append(queues, pace.Queue{Origin: fmt.Sprintf("https://%d.example", i), Waiting: 30 - i, Longest: 1.25})
	}
	const waiting = "Waiting for their turn"
	for _, c := range []struct {
		name    string
		o       origin
		heading string
		page    string // what it has; "": not even the heading
		api     string
		rows    int
	}{
		{"no pace", origin{}, waiting, "", "queues", 0},
		{"no queue", origin{queues: func() []pace.Queue { return nil }}, waiting, "No request waits.", "queues", 0},
		{"queues", origin{queues: func() []pace.Queue { return queues }}, waiting,
			`<a href="/origin?origin=https%3a%2f%2f0.example"><bdi>https://0.example</bdi></a></th><td class="n">30</td><td class="n">1.2</td>`,
			"queues", maxQueues},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := listener(t, &c.o)
			page := ask(h, http.MethodGet, "192.0.2.1:9310", "/").Body.String()
			if has := strings.Contains(page, c.heading); has != (c.page != "") || !strings.Contains(page, c.page) {
				t.Errorf("the page lacks %q:\n%s", c.page, page)
			}
			if rows := answers(t, h, http.MethodGet, "/api/overview")[c.api].([]any); len(rows) != c.rows {
				t.Errorf("the API has %d rows of %s, want %d", len(rows), c.api, c.rows)
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
