package admin

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
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
