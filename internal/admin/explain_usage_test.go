package admin

import (
	"net/http"
	"strings"
	"testing"
)

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
