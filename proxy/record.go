package proxy

import (
	"net/netip"
	"time"

	"robotsgate/policy"
	"robotsgate/policy/robotstag"
	"robotsgate/policy/usage"
)

// A Record is the result of one request. The audit log, the metrics and the status page
// are made from records, and from nothing else.
type Record struct {
	ID      string
	Start   time.Time
	Client  netip.Addr
	Method  string
	URL     string // canonical; as sent by the client if it could not be parsed
	Origin  string // the beginning of URL; empty if that could not be parsed
	Crawler string // name; empty if the request failed before the crawler was identified
	// Decision is nil if the request failed before a decision: a malformed request, a
	// prohibited destination, a name that does not resolve.
	Decision *policy.Decision
	Tags     []robotstag.Rule // the rules of this response that bind the crawler
	// Remembered holds rules of an earlier response to the same URL, if this response has
	// no page whose head could be read.
	Remembered []robotstag.Rule
	// Stated is what the content may be used for, as far as it is known: what robots.txt and tdmrep.json
	// state and, if there was a response, what its header and its page's head state, or stated when they
	// were last seen. Decision.Reserved has the preference that refuses the request, or the response: the
	// reason is policy.ByUsage then. It is the zero value if the page's head could not be read whole.
	Stated usage.Stated
	// Statement is, for policy.ByUsage, the text that reserves, with its place; it may have text from
	// the network.
	Statement string
	Head      Head    // how far the page's head was read
	Error     string  // empty if the request succeeded
	Fault     string  // the error type of a request that failed (RFC 9209, 2.3), if the gate has answered it
	Refused   Refusal // empty if the gate itself did not refuse the request
	Why       string  // it was refused; may have text from the network
	Status    int
	Bytes     int64  // of the response's body that were sent to the client
	Tunnel    bool   // the request came through a CONNECT tunnel, or is one
	Config    string // SHA-256 of the configuration that was in force
	Duration  time.Duration
	Paced     Paced         // how the pace concerned it; the zero value: not at all
	Signed    string        // the ID of the key that the request was signed with; empty: it was not
	Signing   time.Duration // to make its signature, or those of all attempts to send it
	// These are times since Start, and 0 if the request did not get so far.
	Decided  time.Duration // the decision was made
	Sent     time.Duration // the request was sent to the origin
	Upstream time.Duration // the origin's response head arrived, or the request failed
	Answered time.Duration // the response head was sent to the client
}

// A Refusal is the kind of a refusal: the [policy.Reason] of a denial, or one of the kinds below.
type Refusal string

// The kinds of refusals without a decision.
const (
	ByGuard     Refusal = "guard"     // the destination is prohibited
	ByLogin     Refusal = "login"     // the client is none of the crawlers
	ByLimit     Refusal = "limit"     // a limit of the gate, or of its resources, is reached
	ByPace      Refusal = "pace"      // its turn would come too late
	ByAudit     Refusal = "audit"     // the audit log can't be written
	IsMalformed Refusal = "malformed" // the request is malformed, ambiguous, or of a kind that is not served
)

// Kind returns Refused, or the kind of the refusal that report mode has prevented. It is empty if
// the request was not refused and would not be.
func (x *Record) Kind() Refusal {
	if d := x.Decision; x.Refused == "" && d != nil && !d.Allow {
		return Refusal(d.Reason)
	}
	return x.Refused
}

// Cause returns Why, and also why report mode let a denied request through. It is empty if the
// request was not refused and would not be.
func (x *Record) Cause() string {
	if d := x.Decision; x.Refused == "" && d != nil && !d.Allow {
		return x.cause()
	}
	return x.Why
}

// A Head says how far a page was read for its robots rules.
type Head struct {
	State string        // complete, partial, skipped or remembered; empty: the origin did not respond
	Why   string        // the reason for partial and skipped
	Bytes int64         // bytes read, after decoding
	Cut   bool          // the header fields with tags were too long to be read whole
	Age   time.Duration // for remembered: since the rules were seen
}
