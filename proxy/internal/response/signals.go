package response

import (
	"net/http"
	"time"

	"robotsgate/htmlmeta"
	"robotsgate/policy"
	"robotsgate/policy/robotstag"
	"robotsgate/policy/usage"
)

// Signals are what an annotator may read: what is known of a request and its response.
type Signals struct {
	ID       string
	Decision *policy.Decision // nil: there was none
	Paced    Paced
	Inspection
}

// A Head says how far a page was read for its robots rules.
type Head struct {
	State string        // complete, partial, skipped or remembered; empty: the origin did not respond
	Why   string        // the reason for partial and skipped
	Bytes int64         // bytes read, after decoding
	Cut   bool          // the header fields with tags were too long to be read whole
	Age   time.Duration // for remembered: since the rules were seen
}

// An Inspection is what a response states.
type Inspection struct {
	Tags        []robotstag.Rule // that bind the crawler
	Remembered  []robotstag.Rule // of an earlier response to the same URL, if the head of this one could not be read
	Stated      usage.Stated     // before there is a response: what robots.txt and tdmrep.json state
	Head        Head
	Received    http.Header     // the fields that annotators read, as the origin sent them
	ContentType string          // as [htmlmeta.ContentType] returns it
	Metas       []htmlmeta.Meta // of the page's head
	Links       []htmlmeta.Link // of the page's head
	Unknown     bool            // it is not known whether the response has a page
	Seen        usage.Head      // of an earlier response, if this one has no head that could be read
}
