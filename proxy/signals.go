package proxy

import (
	"net/http"
	"time"

	"robotsgate/htmlmeta"
	"robotsgate/policy"
	"robotsgate/policy/pace"
	"robotsgate/policy/robotstag"
	"robotsgate/policy/usage"
)

// signals are what an annotator may read: what is known of a request and its response.
type signals struct {
	ID       string
	Decision *policy.Decision // nil: there was none
	// Statement is, for policy.ByUsage, the text that reserves, with its place.
	Statement string
	Paced     Paced
	inspection
}

// PaceSource is what sets the pace of a request.
type PaceSource string

// The sources.
const (
	ByCrawlDelay            = PaceSource(pace.ByCrawlDelay)
	ByMinDelay              = PaceSource(pace.ByMinDelay)
	ByBackOff    PaceSource = "back-off" // the origin has answered 429 or 503
)

// A Paced request is one that the pace concerns.
type Paced struct {
	Delay  time.Duration // the distance to keep; for ByBackOff how long the pause goes on
	Source PaceSource    // "": only the turns of other requests
	// Announced is set with ByMinDelay if a Crawl-delay that is not shorter is only to be reported. The header
	// reports that.
	Announced bool
	Line      int           // of the Crawl-delay
	Held      time.Duration // the request has waited; in report mode: would have
	// Retry is the time until the request's turn, for which it was not held, but refused; in report
	// mode: would have been.
	Retry    time.Duration
	Refused  bool
	Reported bool // the crawler is in report mode: nothing of this has happened
	Budget   Budget
}

// A Budget is a limit on a number of requests that counts a request. The zero value is none.
type Budget struct {
	pace.Allowance      // what is left
	Refused        bool // nothing was left for this request; in report mode it was sent all the same
}

// delays reports whether a distance, a pause or a turn concerns the request.
func (p *Paced) delays() bool {
	without := *p
	if without.Budget = (Budget{}); p.Budget.By != "" && without == (Paced{Reported: true}) {
		return false
	}
	return without != (Paced{})
}

// Waited returns how long the request has waited.
func (p *Paced) Waited() time.Duration {
	if p.Reported {
		return 0
	}
	return p.Held
}

// A Head says how far a page was read for its robots rules.
type Head struct {
	State string        // complete, partial, skipped or remembered; empty: the origin did not respond
	Why   string        // the reason for partial and skipped
	Bytes int64         // bytes read, after decoding
	Cut   bool          // the header fields with tags were too long to be read whole
	Age   time.Duration // for remembered: since the rules were seen
}

// An inspection is what a response states.
type inspection struct {
	Tags        []robotstag.Rule // that bind the crawler
	Remembered  []robotstag.Rule // of an earlier response, see [Record]
	Stated      usage.Stated     // before there is a response: what robots.txt and tdmrep.json state
	Head        Head
	received    http.Header     // the fields that annotators read, as the origin sent them
	contentType string          // as [htmlmeta.ContentType] returns it
	metas       []htmlmeta.Meta // of the page's head
	links       []htmlmeta.Link // of the page's head
	unknown     bool            // it is not known whether the response has a page
	seen        usage.Head      // of an earlier response, if this one has no head that could be read
}
