package pace

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"robotsgate/internal/field"
	"robotsgate/policy/glob"
)

// longestWindow is the longest window of a limit.
const longestWindow = 31 * 24 * time.Hour

// A Budget permits each crawler so many requests to each host in a window of time.
type Budget struct {
	Crawlers []string      `yaml:"crawlers" doc:"a crawler's name"` // empty: all
	Hosts    []glob.Glob   `yaml:"hosts" glob:"host" doc:"a host, such as \"*.example.com\""`
	Requests int           `yaml:"requests" doc:"a whole number, such as 10000"`
	Window   time.Duration `yaml:"window"`
}

// limit returns the limit by the first budget for a request, the zero value if there is none. A host is all its origins
// together.
func (c *Config) limit(r *Request) Limit {
	if len(c.Budgets) == 0 {
		return Limit{}
	}
	u, err := url.Parse(r.Origin)
	if err != nil {
		return Limit{}
	}
	host := u.Hostname()
	for i, b := range c.Budgets {
		if (len(b.Crawlers) == 0 || slices.Contains(b.Crawlers, r.Crawler)) && slices.ContainsFunc(b.Hosts, func(g glob.Glob) bool { return g.Match(host) }) {
			return Limit{Key: r.Crawler + " " + host, Starts: b.Requests, Window: b.Window, Entry: i + 1}
		}
	}
	return Limit{}
}

// Check reports mistakes. crawlers has the names of all crawlers.
func (b *Budget) Check(m *field.Mistakes, crawlers []string) {
	for j, name := range b.Crawlers {
		m.Require(slices.Contains(crawlers, name), fmt.Sprintf("crawlers[%d]", j), "no crawler is named %.80q: expected %s", name, strings.Join(crawlers, ", "))
	}
	m.Require(len(b.Hosts) > 0, "hosts", `is missing: name the hosts it is for, such as ["*.partner.example"], or ["*"] for each host`)
	m.Require(m.Bad("requests") || b.Requests >= 1 && b.Requests <= 1<<31-1, "requests", "how many requests in a window? 1 to %d", 1<<31-1)
	m.Require(m.Bad("window") || b.Window >= time.Second && b.Window <= longestWindow && b.Window%time.Second == 0, "window", "how long is the window? whole seconds, 1s to %s, such as 24h", field.Duration(longestWindow))
}
