package pace

import (
	"fmt"
	"time"

	"robotsgate/internal/field"
)

// Config says which distance is kept between the starts of two requests to one origin, and how long requests wait
// for it. The zero value keeps no distance.
type Config struct {
	CrawlDelay   CrawlDelay    `yaml:"crawl_delay" enum:"announce,obey"`
	MinDelay     time.Duration `yaml:"min_delay"`                                                   // the least distance at every origin; 0: none
	MaxDelay     time.Duration `yaml:"max_delay"`                                                   // a request with a longer interval is not held
	MaxWait      time.Duration `yaml:"max_wait"`                                                    // a request is not held longer
	MaxQueue     int           `yaml:"max_queue" doc:"a whole number, such as 1000" positive:"yes"` // requests that are held for one origin at most
	BackOff      time.Duration `yaml:"back_off"`                                                    // longest pause after an origin's 429 or 503; 0: none
	Subresources Subresources  `yaml:"subresources" enum:"counted,free"`
	Budgets      []Budget      `yaml:"budgets"` // the first for a request counts
}

// CrawlDelay says what is done about Crawl-delay.
type CrawlDelay string

// What is done about Crawl-delay.
const (
	Announce CrawlDelay = "announce" // only report it; also if empty
	Obey     CrawlDelay = "obey"     // keep that distance
)

// Subresources says how requests for parts of a page are paced.
type Subresources string

// How requests for parts of a page are paced.
const (
	Counted Subresources = "counted" // as all others; also if empty
	Free    Subresources = "free"    // they neither wait nor count
)

// Default returns a configuration without a pace, with bounds for one.
func Default() Config {
	return Config{CrawlDelay: Announce, MaxDelay: time.Minute, MaxWait: 20 * time.Second, MaxQueue: 1000, Subresources: Counted}
}

// A Distance is the interval to the start before, of any crawler, and why.
type Distance struct {
	Interval time.Duration // 0: none
	By       Source        // ByCrawlDelay or ByMinDelay; "" if there is none
}

// measure finds out which distance a request keeps. It reports false if the request neither waits nor counts.
func (c *Config) measure(r *Request) bool {
	r.distance, r.memory, r.limit = Distance{}, 0, Limit{}
	if r.Subresource && c.Subresources == Free {
		return false
	}
	r.limit = c.limit(r)
	if c.MinDelay > 0 {
		r.distance = Distance{Interval: c.MinDelay, By: ByMinDelay}
	}
	if c.CrawlDelay == Obey {
		r.memory = r.LongestDelay
		if r.CrawlDelay > 0 && r.CrawlDelay >= c.MinDelay {
			r.distance = Distance{Interval: r.CrawlDelay, By: ByCrawlDelay}
		}
	}
	return true
}

// On reports whether there is a pace at all.
func (c Config) On() bool {
	return c.CrawlDelay == Obey || c.MinDelay > 0 || c.BackOff > 0 || len(c.Budgets) > 0
}

// Check reports fields that contradict each other. crawlers has the names of all crawlers.
func (c Config) Check(m *field.Mistakes, crawlers []string) {
	for i := range c.Budgets {
		c.Budgets[i].Check(m.In(fmt.Sprintf("budgets[%d]", i)), crawlers)
	}
	m.Require(c.MinDelay <= c.MaxDelay, "min_delay", "%s is more than pace.max_delay, %s, so that no request would be held", field.Duration(c.MinDelay), field.Duration(c.MaxDelay))
}
