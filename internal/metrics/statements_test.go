package metrics

import (
	"testing"

	"robotsgate/policy"
	"robotsgate/policy/usage"
	"robotsgate/proxy"
)

// TestStated counts a request once for each category, whatever categories the publisher names.
func TestStated(t *testing.T) {
	m := New()
	m.Request(&proxy.Record{Decision: &policy.Decision{Allow: true}, Stated: usage.Stated{Preferences: []usage.Preference{
		{Category: "train-ai", Allowed: true}, {Category: "train-ai"}, {Category: "search", Allowed: true}, {Category: "bots", Allowed: true}, {Category: "*"},
	}}})
	m.Request(&proxy.Record{Decision: &policy.Decision{Allow: true}})
	wantLines(t, scrape(m),
		`robotsgate_usage_stated_total{category="train-ai",value="n"} 1`,
		`robotsgate_usage_stated_total{category="train-ai",value="y"} 0`,
		`robotsgate_usage_stated_total{category="ai-input",value="n"} 0`,
		`robotsgate_usage_stated_total{category="search",value="y"} 1`,
		`robotsgate_usage_stated_total{category="tdm",value="y"} 0`,
		`robotsgate_usage_stated_total{category="other",value="n"} 1`,
		`robotsgate_usage_stated_total{category="other",value="y"} 0`,
	)
}
