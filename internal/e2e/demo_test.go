package e2e

import (
	"regexp"
	"strings"
	"testing"

	"robotsgate/internal/gatetest"
)

// TestDemo runs the examples that robotsgate demo prints, and reads its status page.
func TestDemo(t *testing.T) {
	gatetest.Needs(t, "curl")
	demo := gatetest.ServeDemo(t)
	shell := func(command string) string {
		got, err := demo.Shell(command, t.TempDir()).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v", command, err)
		}
		return string(got)
	}
	for url, want := range map[string]string{
		"http://shop.example/robots.txt":          `^User-agent: \*\nDisallow: /private/\n`,
		"http://shop.example/offers.html":         `^HTTP/1.1 200 OK\r\n(?s).*\nRobots-Gate-Decision: allow;reason=no-match`,
		"http://shop.example/private/plans.html":  `^HTTP/1.1 403 Forbidden\r\n(?s).*\nRobots-Gate-Decision: deny;reason=rule`,
		"https://shop.example/private/plans.html": `\nHTTP/2 403 ?\r\n(?s).*\nrobots-gate-decision: deny;reason=rule`,
		"http://shop.example/":                    `<title>Sample site of robotsgate demo</title>`,
	} {
		example := regexp.MustCompile(`(?m)^  (curl \S+ ` + regexp.QuoteMeta(url) + `) +# `).FindStringSubmatch(demo.String())
		if example == nil {
			t.Errorf("no example requests %s:\n%s", url, demo)
			continue
		}
		if got := shell(example[1]); !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("%s printed\n%s", example[1], got)
		}
	}
	if got := shell("curl -s " + demo.Admin); !strings.Contains(got, "Disallow: /private/") {
		t.Errorf("the status page does not show the rule that denied:\n%s", got)
	}
}
