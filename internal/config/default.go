package config

import (
	"reflect"
	"time"

	"robotsgate/internal/admin"
	"robotsgate/internal/audit"
	"robotsgate/internal/fleet"
	"robotsgate/internal/requestlog"
	"robotsgate/internal/store"
	"robotsgate/policy"
	"robotsgate/policy/pace"
	"robotsgate/proxy"
)

// Default returns the configuration with the default of every key.
func Default() *Config {
	c := new(Config)
	setDefaults(reflect.ValueOf(c).Elem())
	c.Robots = Robots{policy.DefaultRobots(), store.DefaultLimits()}
	c.Usage = policy.DefaultUsage()
	c.Tags = Tags{proxy.DefaultTags(), 32 << 20}
	c.HTTPS.Intercept = true
	c.Egress.Egress = proxy.DefaultEgress()
	c.Pace = pace.Default()
	c.Fleet = fleet.Default()
	c.Limits = Limits{Limits: proxy.DefaultLimits(), ShutdownGrace: 30 * time.Second}
	c.Admin = admin.Default()
	c.Log = Log{Format: "text", Requests: requestlog.None, Audit: audit.Default()}
	c.Limits.MaxConnections = proxy.DefaultMaxConnections
	c.fillMemory()
	return c
}

// setDefaults gives the keys of a struct, and of its sections, the values in their tags.
func setDefaults(v reflect.Value) {
	for _, f := range fields(v.Type()) {
		field := v.FieldByIndex(f.Index)
		if text, ok := f.Tag.Lookup("default"); ok {
			if err := new(decoder).set(text, f.Tag, field); err != nil {
				panic(err) // the tag is wrong
			}
		} else if isSection(f.Type) {
			setDefaults(field)
		}
	}
}

// DefaultCrawler returns the crawler with the defaults of every item of crawlers. It
// stands for clients that match no crawler, too.
func DefaultCrawler() Crawler {
	k := Crawler{Name: "default"}
	setDefaults(reflect.ValueOf(&k).Elem())
	return k
}

// CrawlersOrDefault returns the configured crawlers, or else the default one, which
// matches every client.
func (c *Config) CrawlersOrDefault() []Crawler {
	if len(c.Crawlers) == 0 {
		return []Crawler{DefaultCrawler()}
	}
	return c.Crawlers
}
