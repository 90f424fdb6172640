package config

import (
	"time"

	"robotsgate/internal/admin"
	"robotsgate/internal/audit"
	"robotsgate/internal/fleet"
	"robotsgate/internal/keyfile"
	"robotsgate/internal/requestlog"
	"robotsgate/internal/store"
	"robotsgate/policy"
	"robotsgate/policy/pace"
	"robotsgate/proxy"
)

// Default returns the configuration with the default of every key.
func Default() *Config {
	c := &Config{
		Listen: "127.0.0.1:9309", Mode: policy.Enforce, UnknownClients: AllowClients,
		Robots: Robots{policy.DefaultRobots(), store.DefaultLimits()},
		Tags:   Tags{proxy.DefaultTags(), 32 << 20},
		Usage:  policy.DefaultUsage(),
		HTTPS:  HTTPS{HTTPS: proxy.HTTPS{Intercept: true}},
		Egress: Egress{Egress: proxy.DefaultEgress()},
		Pace:   pace.Default(),
		Fleet:  fleet.Default(),
		Limits: Limits{proxy.DefaultLimits(), proxy.ConnectionLimits{MaxConnections: proxy.DefaultMaxConnections}, 0, 0, 30 * time.Second},
		Admin:  admin.Default(),
		Log:    Log{Format: "text", Requests: requestlog.None, Audit: audit.Default()},
	}
	c.fillMemory()
	return c
}

// DefaultCrawler returns the crawler with the defaults of every item of crawlers. It
// stands for clients that match no crawler, too.
func DefaultCrawler() Crawler { return Crawler{policy.DefaultCrawler(), keyfile.Default()} }

// CrawlersOrDefault returns the configured crawlers, or else the default one, which
// matches every client.
func (c *Config) CrawlersOrDefault() []Crawler {
	if len(c.Crawlers) == 0 {
		return []Crawler{DefaultCrawler()}
	}
	return c.Crawlers
}
