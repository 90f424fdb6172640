package snapshot

import (
	"strings"
	"time"

	"robotsgate/internal/field"
)

// Settings say how robots.txt is fetched, for how long an answer counts, and what it means. They are keys of the
// robots section of a gate's configuration.
type Settings struct {
	MaxAge          time.Duration `yaml:"max_age"`                                // upper bound on freshness
	MinAge          time.Duration `yaml:"min_age"`                                // lower bound
	StaleFor        time.Duration `yaml:"stale_for"`                              // how long the last good copy serves while robots.txt is unreachable; 0: not at all
	AfterStale      string        `yaml:"after_stale" enum:"disallow,allow,keep"` // then: "disallow" (also if empty), "allow" or "keep" the copy
	Timeout         time.Duration `yaml:"timeout" positive:"yes"`                 // of a whole fetch, redirects included
	MaxBytes        int64         `yaml:"max_bytes" restart:"yes"`                // of a decoded robots.txt; a longer one is cut
	MaxRedirects    int           `yaml:"max_redirects" doc:"a whole number, 0 or more, such as 5"`
	TooManyRequests string        `yaml:"too_many_requests" enum:"disallow,allow"`               // a 429 means "disallow" (also if empty) or "allow"
	Unavailable     string        `yaml:"unavailable" enum:"allow,keep"`                         // a 4xx means "allow" (also if empty), or "keep" the last good copy
	Forbidden       string        `yaml:"forbidden" enum:"allow,disallow"`                       // a 401 or 403 means "allow" (also if empty), as any other 4xx, or "disallow"
	HTML            string        `yaml:"html" enum:"allow,unreachable"`                         // an HTML page in place of robots.txt means "allow" (also if empty), or "unreachable"
	UserAgent       string        `yaml:"user_agent" doc:"a User-Agent, such as ExampleBot/1.0"` // of fetches; empty: that of the [Query]
	CacheBytes      int64         `yaml:"cache_bytes" restart:"yes" positive:"yes"`

	tdmrep bool // these are the settings for tdmrep.json, see forTDMRep
}

// DefaultSettings returns the settings that suit most crawlers.
func DefaultSettings() Settings {
	return Settings{
		MaxAge: 24 * time.Hour, MinAge: 5 * time.Minute, StaleFor: 30 * 24 * time.Hour, AfterStale: "disallow",
		Timeout: 10 * time.Second, MaxBytes: 512 << 10, MaxRedirects: 5, TooManyRequests: "disallow", Unavailable: "allow",
		Forbidden: "allow", HTML: "allow", CacheBytes: 64 << 20,
	}
}

// forTDMRep returns the settings for answers to the request for tdmrep.json. It has no settings for a 404, a 410 and a
// copy older than StaleFor: they state nothing, and so deny nothing. Another 4xx ends no good copy.
func (c Settings) forTDMRep() *Settings {
	c.Unavailable, c.Forbidden, c.AfterStale, c.tdmrep = "", "", "", true
	return &c
}

// Check reports values that make no sense. A MinAge that is not given is at most MaxAge.
func (c *Settings) Check(m *field.Mistakes) {
	m.Require(c.MaxAge > 0 && c.MaxAge <= 24*time.Hour, "max_age", "%s is out of bounds: more than 0s and at most 24h (RFC 9309, section 2.4)", field.Duration(c.MaxAge))
	// A shorter max_age alone must not conflict with the default of min_age.
	if !m.Given("min_age") {
		c.MinAge = min(c.MinAge, c.MaxAge)
	}
	if !m.Bad("max_age") {
		m.Require(c.MinAge <= c.MaxAge, "min_age", "%s is more than robots.max_age, %s", field.Duration(c.MinAge), field.Duration(c.MaxAge))
	}
	m.Require(c.MaxBytes >= 500<<10, "max_bytes", "%s is too little: at least 500KiB (RFC 9309, section 2.5)", field.Size(c.MaxBytes))
	m.Require(len(c.UserAgent) <= maxUserAgent && !strings.ContainsFunc(c.UserAgent, func(r rune) bool { return r < ' ' || r > '~' }), "user_agent",
		"expected at most %d bytes of printable ASCII, such as ExampleBot/1.0 (+https://example.com/bot)", maxUserAgent)
	m.Require(c.MaxRedirects >= 0 && c.MaxRedirects <= 20, "max_redirects", "%d is out of bounds: 0 to 20", c.MaxRedirects)
}
