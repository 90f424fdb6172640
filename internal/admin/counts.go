package admin

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"robotsgate/internal/record"
)

// maxCrawlers bounds the crawlers that are counted. Their names are those of the configuration,
// which a reload may change.
const maxCrawlers = 1000

// Crawlers is the maximum of crawlers in a State.
const Crawlers = 100

// A Crawler counts the requests of one crawler since the start.
type Crawler struct {
	Name          string    `json:"name"`
	Requests      uint64    `json:"requests"`
	record.Counts           // which add up to Requests
	Seen          time.Time `json:"last_seen"`
}

// byCrawler counts requests by the name of their crawler.
type byCrawler map[string]*Crawler

// add counts a request that ended at a time. Some fail before the crawler is identified.
func (b byCrawler) add(x *record.Record, end int64) {
	if x.Crawler == "" {
		return
	}
	c := b[x.Crawler]
	if c == nil {
		if len(b) == maxCrawlers {
			return
		}
		name := strings.Clone(x.Crawler)
		c = &Crawler{Name: name}
		b[name] = c
	}
	c.Requests++
	c.Seen = time.Unix(end, 0).UTC()
	c.Count(x)
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

// A Cause is how many requests of the last hour had no decision for one reason.
type Cause struct {
	Kind     string `json:"kind"` // a [record.Refusal], or failed
	Requests uint64 `json:"requests"`
}

const (
	// Login is the kind of requests from clients that are none of the crawlers.
	Login = string(record.ByLogin)
	// Failed is the kind of requests that the gate did not refuse: the name did not resolve, or
	// the client has disconnected.
	Failed = "failed"
)

// kinds are those of requests without a decision. The last counts all that the others do not.
var kinds = [...]string{
	string(record.ByGuard), Login, string(record.ByLimit), string(record.ByAudit), string(record.IsMalformed), Failed,
}

// kindOf returns the index in kinds for a request without a decision.
func kindOf(x *record.Record) int {
	if i := slices.Index(kinds[:], string(x.Refused)); i >= 0 {
		return i
	}
	return len(kinds) - 1
}

// causesOf returns the causes that have requests, the most frequent first.
func causesOf(n [len(kinds)]uint64) []Cause {
	all := []Cause{}
	for i, kind := range kinds {
		if n[i] > 0 {
			all = append(all, Cause{kind, n[i]})
		}
	}
	slices.SortStableFunc(all, func(a, b Cause) int { return cmp.Compare(b.Requests, a.Requests) })
	return all
}
