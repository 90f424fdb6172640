package policy_test

import (
	"strings"
	"testing"
	"time"

	"robotsgate/policy"
	"robotsgate/policy/canonical"
	"robotsgate/policy/robotstxt"
)

// TestPermitting: the override for one refused request, as a line of a configuration. internal/auditreport tests what it
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

// TestPermittingAllows: each override allows the request that it is for, as an Engine decides, and a path without one has
// another reading.
func TestPermittingAllows(t *testing.T) {
	permitted, refused := 0, 0
	var visit func(path string, more int)
	visit = func(path string, more int) {
		target, err := canonical.ParseURL("https://shop.example" + path)
		if err != nil {
			return
		}
		o := policy.Permitting(target, "GET", "default")
		if o == nil {
			refused++
			if len(robotstxt.Readings(target.Path)) == 0 {
				t.Errorf("%s: no override, and no other reading", path)
			}
		} else {
			permitted++
			ask := policy.Request{Target: target, Method: "GET", Crawler: &policy.Crawler{Name: "default"}}
			if d, ok := policy.Overridden(policy.Prepared([]policy.Override{*o}), policy.Strict, ask, time.Time{}); !ok || !d.Allow {
				t.Errorf("%s: %s does not allow it", path, o.Line())
			}
		}
		for _, next := range []string{"a", "/", ".", ";", "%2F", "%3F", "%2e", "..", "\\", "?", "%", "*", "$", "#", "%00", "é"} {
			if more > 0 {
				visit(path+next, more-1)
			}
		}
	}
	visit("/", 3)
	for _, length := range []int{1000, 2083, 8192, 65536} {
		visit("/"+strings.Repeat("a", length), 0)
	}
	if permitted < 1000 || refused < 100 {
		t.Errorf("%d permitted, %d refused", permitted, refused)
	}
}
