package robotstxt

import (
	"encoding/json"
	"testing"

	"robotsgate/internal/gatetest"
	"robotsgate/policy/canonical"
)

// TestConformance runs the cases of other parsers in the folder that
// ROBOTSGATE_CONFORMANCE names: JSON lines in the form of check --batch, with the expected
// answer in allowed.
func TestConformance(t *testing.T) {
	gatetest.Conformance(t, func(t *testing.T, where string, line []byte) bool {
		var c struct {
			Robots       *string `json:"robots"`
			RobotsB64    []byte  `json:"robots_b64"`
			URL          string  `json:"url"`
			ProductToken *string `json:"product_token"`
			Status       int     `json:"status"`
			Allowed      *bool   `json:"allowed"`
		}
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatalf("%s: %v", where, err)
		}
		if c.Robots == nil && c.RobotsB64 == nil || c.Allowed == nil {
			return false // not of this form
		}
		if c.ProductToken == nil || c.Status != 0 && c.Status != 200 {
			return false // about more than this package
		}
		if c.Robots != nil {
			c.RobotsB64 = []byte(*c.Robots)
		}
		v := Parse(c.RobotsB64, 0).Decide(canonical.PathOf(c.URL), *c.ProductToken)
		if v.Allowed != *c.Allowed {
			t.Errorf("%s: %.300q: %s for %q: got allowed %v by %q, want %v", where, c.RobotsB64, c.URL, *c.ProductToken, v.Allowed, v.Rule, *c.Allowed)
		}
		return true
	})
}
