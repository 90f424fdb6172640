package policy_test

import (
	"testing"

	"robotsgate/policy"
	"robotsgate/policy/canonical"
)

// TestPermitting: the override for one refused request, as a line of a configuration. internal/audit tests what it
// allows.
func TestPermitting(t *testing.T) {
	for _, c := range []struct{ method, url, crawler, want string }{
		{"HEAD", "https://shop.example/private/a*b$?x", "default",
			`- {hosts: ["shop.example"], paths: ["/private/a%2Ab%24?x$"], methods: ["GET", "HEAD"], crawlers: ["default"], action: allow, reason: "say why"}`},
		{"POST", "http://[2001:db8::1]:81/", `co"${X}`, `- {hosts: ["2001:db8::1"], paths: ["/$"], methods: ["POST"], crawlers: ["co\"$${X}"], action: allow, reason: "say why"}`},
		{"CONNECT", "https://shop.example/", "default", `- {hosts: ["shop.example"], crawlers: ["default"], action: allow, reason: "say why"}`},
		{"GET", "https://shop.example/public/..;/private/", "default", ""}, // it may mean /private/
		{"TRACE", "https://shop.example/", "default", ""},
		{"get", "https://shop.example/", "default", ""},
		{"GET", "https://shop.example/", "", ""},
	} {
		target, err := canonical.ParseURL(c.url)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if o := policy.Permitting(target, c.method, c.crawler); o != nil {
			got = o.Line()
		}
		if got != c.want {
			t.Errorf("%s %s: got %s, want %s", c.method, c.url, got, c.want)
		}
	}
}
