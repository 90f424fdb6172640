package config

import (
	"log/slog"
	"time"
)

// Default returns the configuration with the default of every key.
func Default() *Config {
	return &Config{
		Listen:         "127.0.0.1:9309",
		Mode:           Enforce,
		UnknownClients: AllowClients,
		Robots: Robots{
			MaxAge:            24 * time.Hour,
			MinAge:            5 * time.Minute,
			StaleFor:          720 * time.Hour,
			AfterStale:        "disallow",
			Timeout:           10 * time.Second,
			MaxBytes:          512 * KiB,
			MaxRedirects:      5,
			TooManyRequests:   "disallow",
			Unavailable:       "allow",
			UnreachableStatus: 403,
			Readings:          "strict",
			CacheBytes:        256 * MiB,
			Keep:              8760 * time.Hour,
			DiskBytes:         10 * GiB,
		},
		Tags: Tags{
			HTML:         true,
			MaxHeadBytes: 512 * KiB,
			HeadTimeout:  5 * time.Second,
			CacheBytes:   32 * MiB,
		},
		HTTPS: HTTPS{Intercept: true},
		Egress: Egress{
			DialTimeout:           10 * time.Second,
			ResponseHeaderTimeout: 60 * time.Second,
			IdleTimeout:           90 * time.Second,
		},
		Limits: Limits{
			MaxHeaderBytes: 64 * KiB,
			HeaderTimeout:  10 * time.Second,
			IdleTimeout:    120 * time.Second,
			MaxConnections: 10000,
			ShutdownGrace:  30 * time.Second,
		},
		Admin: Admin{Listen: "127.0.0.1:9310"},
		Log:   Log{Level: slog.LevelInfo, Format: "text", AuditKeep: 30},
	}
}

// DefaultCrawler returns the crawler with the defaults of every item of crawlers. It
// stands for clients that match no crawler, too.
func DefaultCrawler() Crawler {
	return Crawler{Name: "default", DenyStatus: 403}
}

// CrawlersOrDefault returns the configured crawlers, or else the default one, which
// matches every client.
func (c *Config) CrawlersOrDefault() []Crawler {
	if len(c.Crawlers) == 0 {
		return []Crawler{DefaultCrawler()}
	}
	return c.Crawlers
}
