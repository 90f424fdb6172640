package overview

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"robotsgate/proxy"
)

// maxCrawlers bounds the crawlers that are counted. Their names are those of the configuration,
// which a reload may change.
const maxCrawlers = 1000

// Crawlers is the maximum of crawlers in a State.
const Crawlers = 100

// A Crawler counts the requests of one crawler since the start.
type Crawler struct {
	Name     string    `json:"name"`
	Requests uint64    `json:"requests"`
	Counts             // which add up to Requests
	Seen     time.Time `json:"last_seen"`
}

// byCrawler counts requests by the name of their crawler.
type byCrawler map[string]*Crawler

// add counts a request that ended at a time. Some fail before the crawler is identified.
func (b *byCrawler) add(x *proxy.Record, end int64) {
	if x.Crawler == "" {
		return
	}
	c := (*b)[x.Crawler]
	if c == nil {
		if len(*b) == maxCrawlers {
			return
		}
		if *b == nil {
			*b = byCrawler{}
		}
		name := strings.Clone(x.Crawler)
		c = &Crawler{Name: name}
		(*b)[name] = c
	}
	c.Requests++
	c.Seen = time.Unix(end, 0).UTC()
	c.count(x.Decision)
}

// busiest returns the n crawlers with the most requests, in order.
func (b byCrawler) busiest(n int) []Crawler {
	all := make([]Crawler, 0, len(b))
	for _, c := range b {
		all = append(all, *c)
	}
	slices.SortFunc(all, func(a, b Crawler) int {
		return cmp.Or(cmp.Compare(b.Requests, a.Requests), strings.Compare(a.Name, b.Name))
	})
	return all[:min(n, len(all))]
}
