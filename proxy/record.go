package proxy

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"robotsgate/internal/record"
	"robotsgate/policy"
	"robotsgate/policy/robotstag"
	"robotsgate/proxy/internal/response"
	"robotsgate/proxy/internal/sign"
)

// Why a tunnel carried no request.
const (
	NothingSent  = "the client sent nothing through its tunnel"
	TLSGivenUp   = "the client gave up the TLS handshake" // mostly since it does not trust the CA
	TLSFailed    = "the TLS handshake failed"
	NoneAfterTLS = "the client sent no request after the TLS handshake"
	NoRequest    = "the client sent neither TLS nor a whole request of HTTP"
)

// results are what the stages of a request have returned so far.
type results struct {
	crawler          *policy.Crawler // nil: not identified
	response.Signals                 // the decision, the pace, and what the response states
	decided          time.Duration
	sent             time.Duration
	upstream         time.Duration
	signed           sign.Signature
	userAgent        string           // that the gate has set
	said             *answer          // of the gate itself; nil: there was none
	body             *response.Stream // of the response that is passed on; nil: there is none
	failed           string
	unused           string // why this tunnel carried no request; empty: it is a request, or a tunnel that was relayed
}

// recordOf puts the record of a request together. Every record is made here.
func recordOf(in *inbound, x *results, out *response.Recorder) *record.Record {
	r := &record.Record{
		Time: in.start.UTC(), ID: in.id, Method: in.method, Origin: in.origin, Tunnel: in.tunnel, Socks: in.conn.socks, Config: in.settings.Config,
		Tags: tagTexts(x.Tags, x.Remembered), Usage: x.Stated.Details(), Licenses: x.Stated.URLs(), HeadRead: x.Head.State, HeadWhy: x.Head.Why,
		UserAgent: x.userAgent, Signed: x.signed.Key, Error: x.failed, Unused: x.unused, Status: out.Status, Bytes: out.Bytes, Duration: time.Since(in.start).Seconds(),
		Stages: record.Durations{Decided: x.decided, Sent: x.sent, Upstream: x.upstream, Signing: x.signed.Took},
	}
	if r.Path = strings.TrimPrefix(in.url, in.origin); in.origin == "" {
		r.Path, r.URL = "", in.url
	}
	if in.client.IsValid() {
		r.Client = in.client.String()
	}
	if x.crawler != nil {
		r.Crawler = x.crawler.Name
	}
	if d := x.Decision; d != nil {
		d.Record(r)
		if !d.Allow {
			r.Cause = denial(d)
		}
	}
	if a := x.said; a != nil && a.refused != "" {
		r.Cause = cmp.Or(a.cause, a.detail)
		if a.refused != record.Refusal(r.Reason) {
			r.Refused = a.refused
		}
	}
	r.Paced = record.Paced{Held: x.Paced.Waited().Seconds(), Refused: r.Refused == record.ByPace}
	if x.body != nil && x.body.Failed != "" && x.failed == "" {
		r.Error = x.body.Failed
	}
	if !out.Answered.IsZero() {
		r.Stages.Answered = out.Answered.Sub(in.start)
	}
	return r
}

func tagTexts(lists ...[]robotstag.Rule) (all []string) {
	for _, rules := range lists {
		all = slices.Grow(all, len(rules))
		for _, rule := range rules {
			all = append(all, rule.String())
		}
	}
	return all
}

// recordUnused makes the record of a tunnel that carried no request. status is that of the answer to its CONNECT.
func (p *Proxy) recordUnused(in *inbound, status int, why string, cause error) {
	x := results{unused: why, failed: why}
	if cause != nil {
		x.failed += ": " + cause.Error()
	}
	x.crawler = p.clients.likely(context.Background(), in.settings.Engine.Crawlers(), senderOf(in))
	p.Done(recordOf(in, &x, &response.Recorder{Status: status}))
}
