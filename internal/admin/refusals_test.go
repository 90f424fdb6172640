package admin

import (
	"fmt"
	"strings"
	"testing"

	"robotsgate/internal/record"
)

// TestRefusals: the page shows the latest refusals, and finds one by its id.
func TestRefusals(t *testing.T) {
	x := denied("http://a.example/x?a=1&b=2", "/x", true)
	x.ID, x.Crawler, x.Method, x.Status = "ABC234", "news", "GET", 403
	attack := &record.Record{ID: "DEF567", Method: "GET", URL: `http://b.example/"><script>`, Refused: record.ByGuard, Cause: "<script>alert(1)</script>\u202e", Crawler: `a&b"c`}
	h := listener(t, &origin{status: 200, body: rules, seen: seen(x, attack)})
	const refusal = "GET http://a.example/x?a=1&b=2 rule robots.txt line 7: Disallow: /x of http://a.example/robots.txt"
	for _, path := range []string{"/", "/live"} {
		page := see(t, h, path)
		has(t, page, "Latest refusals GET http://b.example/", `guard <script>alert(1)</script>\u202e`, refusal, "status 403, crawler news , id ABC234",
			"Crawler Requests Denied Would be denied Refused by pace or limit No decision Last seen", "news 1 1 0 0 0", `a&b"c 1 0 0 0 1`)
		if strings.Contains(page, "<script>alert") {
			t.Errorf("%s: a text has become markup", path)
		}
	}
	page := see(t, h, "/")
	for _, link := range []string{"/?url=http%3a%2f%2fa.example%2fx%3fa%3d1%26b%3d2&amp;crawler=news#explain", "crawler=a%26b%22c#explain"} {
		if !strings.Contains(page, link) {
			t.Errorf("no link to %s", link)
		}
	}
	found := see(t, h, "/?id=%20abc234")
	if strings.Count(found, "id <code>ABC234</code>") != 2 {
		t.Error("the lookup does not show the refusal")
	}
	if first, hour := strings.Index(found, "id <code>ABC234</code>"), strings.Index(found, "The last hour"); first > hour {
		t.Error("the refusal is not seen without scrolling")
	}
	has(t, see(t, h, "/?id=%3Cb%3E%E2%80%AE"), `None of the last 1000 refusals has the id <b>\u202e .`)
	if got := answers(t, h, "GET", "/api/overview"); len(got["refusals"].([]any)) != 2 || len(got["requests_by_crawler"].([]any)) != 2 {
		t.Errorf("the API has %v and %v", got["refusals"], got["requests_by_crawler"])
	}
}

// TestRefusalAPI: /api/refusal finds the latest refusal by id or URL, with what can be done about it.
func TestRefusalAPI(t *testing.T) {
	const long = "http://a.example/" + "0123456789/0123456789/0123456789/0123456789/0123456789/0123456789/0123456789/0123456789/0123456789/0123456789/0123456789/0123456789/" +
		"0123456789/0123456789/0123456789/0123456789/0123456789/0123456789/0123456789/0123456789/0123456789/0123456789/0123456789/"
	var all []*record.Record
	add := func(id, method, url, kind string) {
		x := denied(url, "/x", true)
		x.ID, x.Crawler, x.Method = id, "news", method
		if kind != "rule" {
			x.Decision, x.Refused, x.Cause = "", record.Refusal(kind), "why"
		}
		all = append(all, x)
	}
	add("A1", "POST", "http://a.example/x", "rule")
	add("A2", "GET", "http://a.example/x", "rule")
	add("A3", "GET", long+"1", "rule")
	add("A4", "GET", long+"2", "rule")
	add("A5", "CONNECT", "https://b.example", "override")
	add("A6", "GET", "http://c.example/", "guard")
	add("A7", "GET", "http://d.example/a/..;/b", "rule") // it may mean /b
	h := listener(t, &origin{status: 200, body: rules, seen: seen(all...)})
	for _, c := range []struct{ query, id, override string }{
		{"id=a1", "A1", `- {hosts: ["a.example"], paths: ["/x$"], methods: ["POST"], crawlers: ["news"], action: allow, reason: "say why"}`},
		{"url=HTTP://A.example:80/x", "A2", `- {hosts: ["a.example"], paths: ["/x$"], methods: ["GET", "HEAD"], crawlers: ["news"], action: allow, reason: "say why"}`},
		{"url=" + long + "1", "A3", ""},
		{"url=" + long + "2", "A4", ""},
		{"url=https://b.example/any", "A5", `- {hosts: ["b.example"], crawlers: ["news"], action: allow, reason: "say why"}`},
		{"id=A6", "A6", ""},
		{"id=A7", "A7", ""},
	} {
		got := answers(t, h, "GET", "/api/refusal?"+c.query)
		if override, _ := got["override"].(string); got["id"] != c.id || override != c.override || got["change"] == "" {
			t.Errorf("%s: got %v", c.query, got)
		}
	}
	for query, status := range map[string]int{"id=A9": 404, "url=http://a.example/y": 404, "url=" + long: 404, "url=" + long + "3": 404, "": 400,
		"id=A1&url=http://a.example/x": 400, "url=nonsense": 400} {
		if got := ask(h, "GET", "192.0.2.1:9310", "/api/refusal?"+query).Code; got != status {
			t.Errorf("%q: got %d, want %d", query, got, status)
		}
	}
}

// TestRefusalRedacted: with log.redact_query a URL finds its refusal, and the answer does not have the query.
func TestRefusalRedacted(t *testing.T) {
	o := NewOverview()
	x := denied("http://a.example/x?key=secret", "/x", true)
	x.ID, x.Method = "A1", "GET"
	x.Redact()
	o.Request(x)
	got := answers(t, listener(t, &origin{status: 200, body: rules, seen: o}), "GET", "/api/refusal?url=http://a.example/x%3Fkey=secret")
	if text := fmt.Sprint(got); got["id"] != "A1" || got["override"] != nil || strings.Contains(text, "secret") {
		t.Errorf("got %s", text)
	}
}
