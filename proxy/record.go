package proxy

import (
	"cmp"
	"context"
	"net/netip"
	"time"

	"robotsgate/policy"
	"robotsgate/policy/robotstag"
	"robotsgate/policy/usage"
	"robotsgate/proxy/internal/response"
	"robotsgate/proxy/internal/sign"
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
	Unused    Unused  // why this tunnel carried no request; empty: the record is of a request, or of a tunnel that was relayed
	Error     string  // empty if the request succeeded; it begins with Unused
	Fault     string  // the error type of a request that failed (RFC 9209, 2.3), if the gate has answered it
	Refused   Refusal // empty if the gate itself did not refuse the request
	Why       string  // it was refused; may have text from the network
	Status    int
	Bytes     int64  // of the response's body that were sent to the client
	Tunnel    bool   // the request came through a tunnel of CONNECT or SOCKS, or is one
	Socks     bool   // it came by SOCKS
	Config    string // SHA-256 of the configuration that was in force
	Duration  time.Duration
	Paced     Paced         // how the pace concerned it; the zero value: not at all
	UserAgent string        // that was sent in place of the client's; empty: none was
	Signed    string        // the ID of the key that the request was signed with; empty: it was not
	Signing   time.Duration // to make its signature, or those of all attempts to send it
	// These are times since Start, and 0 if the request did not get so far.
	Decided  time.Duration // the decision was made
	Sent     time.Duration // the request was sent to the origin
	Upstream time.Duration // the origin's response head arrived, or the request failed
	Answered time.Duration // the response head was sent to the client
}

// Kind returns Refused, or the kind of the refusal that report mode has prevented. It is empty if
// the request was not refused and would not be.
func (r *Record) Kind() Refusal {
	if d := r.Decision; r.Refused == "" && d != nil && !d.Allow {
		return Refusal(d.Reason)
	}
	return r.Refused
}

// Cause returns Why, and also why report mode let a denied request through. It is empty if the
// request was not refused and would not be.
func (r *Record) Cause() string {
	if d := r.Decision; r.Refused == "" && d != nil && !d.Allow {
		return denial(d, r.Statement)
	}
	return r.Why
}

// An Unused is why a tunnel carried no request.
type Unused string

// The reasons.
const (
	NothingSent  Unused = "the client sent nothing through its tunnel"
	TLSGivenUp   Unused = "the client gave up the TLS handshake" // mostly since it does not trust the CA
	TLSFailed    Unused = "the TLS handshake failed"
	NoneAfterTLS Unused = "the client sent no request after the TLS handshake"
	NoRequest    Unused = "the client sent neither TLS nor a whole request of HTTP"
)

// results are what the stages of a request have returned so far.
type results struct {
	crawler   *policy.Crawler // nil: not identified
	signals                   // the decision, the pace, and what the response states
	decided   time.Duration
	sent      time.Duration
	upstream  time.Duration
	signed    sign.Signature
	userAgent string           // that the gate has set
	said      *answer          // of the gate itself; nil: there was none
	body      *response.Stream // of the response that is passed on; nil: there is none
	failed    string
	unused    Unused
}

// record puts the record of a request together. Every Record is made here.
func record(in *inbound, x *results, out *response.Recorder) *Record {
	r := &Record{
		ID: in.id, Start: in.start, Client: in.client, Method: in.method, URL: in.url, Origin: in.origin, Tunnel: in.tunnel, Socks: in.conn.socks, Config: in.settings.Config,
		Decision: x.Decision, Paced: x.Paced,
		Tags: x.Tags, Remembered: x.Remembered, Stated: x.Stated, Statement: x.Statement, Head: x.Head,
		UserAgent: x.userAgent, Signed: x.signed.Key, Signing: x.signed.Took, Error: x.failed, Unused: x.unused,
		Status: out.Status, Bytes: out.Bytes,
		Decided: x.decided, Sent: x.sent, Upstream: x.upstream, Duration: time.Since(in.start),
	}
	if x.crawler != nil {
		r.Crawler = x.crawler.Name
	}
	switch a := x.said; {
	case a == nil:
	case a.refused != "":
		r.Refused, r.Why = a.refused, cmp.Or(a.cause, a.detail)
	default:
		r.Fault = a.fault
	}
	if x.body != nil && x.body.Failed != "" && x.failed == "" {
		r.Error = x.body.Failed
	}
	if !out.Answered.IsZero() {
		r.Answered = out.Answered.Sub(in.start)
	}
	return r
}

// recordUnused makes the record of a tunnel that carried no request. status is that of the answer to its CONNECT.
func (p *Proxy) recordUnused(in *inbound, status int, why Unused, cause error) {
	x := results{unused: why, failed: string(why)}
	if cause != nil {
		x.failed += ": " + cause.Error()
	}
	x.crawler = p.clients.likely(context.Background(), in.settings.Engine.Crawlers(), senderOf(in))
	p.Done(record(in, &x, &response.Recorder{Status: status}))
}
