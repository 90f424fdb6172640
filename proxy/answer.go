package proxy

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"
	"unicode/utf8"

	"robotsgate/internal/record"
	"robotsgate/policy"
	"robotsgate/policy/snapshot"
	"robotsgate/proxy/internal/body"
	"robotsgate/proxy/internal/origin"
	"robotsgate/proxy/internal/response"
	"robotsgate/proxy/internal/sign"
)

// An answer is what the gate itself says: a refusal or an error, as a problem (RFC 9457), or robots.txt.
type answer struct {
	status     int
	kind       string // last part of the type URN; empty: fault
	title      string // empty: the text of the status
	detail     string // sentences: what happened, and what the reader can do; when to try again is added
	fault      string // error type in Proxy-Status (RFC 9209, 2.3)
	cause      string // details in Proxy-Status
	retry      time.Duration
	closeAfter bool           // close the connection after this answer
	refused    record.Refusal // the kind; empty: the request failed
	err        string         // for the record
	undecided  bool           // no decision applies to the request, also if there was one
	file       *file          // robots.txt; nil: a problem
}

// loginChallenge is the Proxy-Authenticate of a 407 (RFC 7617, section 2.1).
const loginChallenge = `Basic realm="robotsgate", charset="UTF-8"`

// errInvalidResponse is the error of a response that must not be forwarded.
var errInvalidResponse = errors.New("the origin's answer has a status or a field that it must not have")

// badRequest answers a request that is malformed or ambiguous.
func badRequest(err error) *answer {
	return &answer{status: http.StatusBadRequest, detail: "The request was not understood: " + err.Error() + ".", fault: "http_request_error", refused: record.IsMalformed}
}

// misdirected answers a request that is for another origin than its connection (RFC 9110, 15.5.20).
func misdirected(detail string) *answer {
	return &answer{status: http.StatusMisdirectedRequest, fault: "http_request_denied", refused: record.IsMalformed, detail: detail}
}

// denial returns why a decision denies, in a few words.
func denial(d *policy.Decision) string {
	switch d.Reason {
	case policy.ByRule:
		return "robots.txt line " + strconv.Itoa(d.Rule.Line) + ": " + d.Rule.String()
	case policy.IsUnreachable:
		return "robots.txt unreachable: " + d.Robots.Snapshot.Error
	case policy.TooComplex:
		return "robots.txt takes too many steps for this URL"
	case policy.ByOverride:
		return "operator's override: " + d.Note
	case policy.ByUsage:
		return response.Reservation(d)
	}
	return string(d.Reason)
}

// refusal answers a denied request.
func refusal(in *inbound, s *response.Signals) *answer {
	d := s.Decision
	p := &answer{status: cmp.Or(d.Crawler.DenyStatus, http.StatusForbidden), kind: string(d.Reason), title: "Refused by robots rules", fault: "http_request_denied", cause: denial(d), refused: record.Refusal(d.Reason)}
	switch d.Reason {
	case policy.ByRule:
		line, rule := strconv.Itoa(d.Rule.Line), d.Rule.String()
		p.detail = "Line " + line + " of " + d.RobotsURL + " says " + strconv.Quote(rule) + ", in the group for " + d.Group.Written() + "."
	case policy.IsUnreachable:
		p.status, p.title, p.retry = in.settings.Engine.UnreachableStatus(), "robots.txt is unreachable", d.Robots.Retry
		why := d.Robots.Snapshot.Error
		p.detail = fmt.Sprintf("%s could not be fetched (%s). Until it can be fetched, all requests to this origin are denied (RFC 9309, 2.3.1.4).", d.RobotsURL, why)
		if d.ParentFailed() {
			p.title, p.fault = "The parent proxy could not be reached", "proxy_configuration_error"
		}
	case policy.TooComplex:
		p.title = "robots.txt is too complex for this URL"
		p.detail = "To compare this URL with all rules of " + d.RobotsURL + ", in the group for " + d.Group.Written() + ", takes more steps than a decision may, so it is denied. A shorter URL may be decided."
	case policy.ByOverride:
		p.title = "Refused by the operator"
		p.detail = "An override of this gate denies this request: " + d.Note + "."
	case policy.ByUsage:
		p.title, p.detail = response.ExplainReserved(s)
	}
	if d.ReadAs != "" {
		p.detail += " Common servers read this path as " + strconv.Quote(d.ReadAs) + "."
	}
	if d.Reason == policy.ByRule || d.Reason == policy.ByOverride || d.Reason == policy.ByUsage && d.Reserved.Category != "" {
		p.detail += " This is policy and no fault: another route or another try will not help."
	}
	return p
}

// failure answers a request that failed: the origin, or its robots.txt, could not be reached. upload is the request's
// body, nil if it has none.
func failure(err error, in *inbound, upload *body.Upload) *answer {
	p := &answer{title: "The origin could not be reached", err: err.Error()}
	switch {
	case upload != nil && upload.Limit.Fired():
		p.status, p.title, p.fault, p.closeAfter = http.StatusRequestTimeout, "The request did not come to its end", "http_request_error", in.http1()
		p.detail = "The client was silent for longer than limits.idle_timeout in the middle of its request."
	case upload != nil && upload.Err() != nil:
		p.status, p.title, p.fault, p.closeAfter = http.StatusBadRequest, "The request did not come to its end", "http_request_error", in.http1()
		p.detail = "The request's body was not understood: " + origin.Innermost(upload.Err()) + "."
	case errors.Is(err, sign.ErrUnsigned):
		p.status, p.title, p.fault = http.StatusInternalServerError, "The request could not be signed", "proxy_internal_error"
		p.detail = "The requests of this crawler are signed, and no signature could be made for this one, so it was not sent: " + origin.Innermost(err) + "."
	case errors.Is(err, policy.ErrHiddenDots):
		p = badRequest(err)
		p.err = err.Error()
	case errors.Is(err, snapshot.ErrBusy):
		p.status, p.kind, p.title, p.fault, p.retry, p.refused = http.StatusServiceUnavailable, "robots-busy", "Too many large robots.txt files", "proxy_internal_response", time.Second, record.ByLimit
		p.detail = "The gate is reading as many large robots.txt files as it may, and has not come to this origin's."
	case errors.Is(err, errInvalidResponse):
		p.status, p.fault, p.detail = http.StatusBadGateway, "http_protocol_error", "The origin's answer has a status or a field that it must not have."
	default:
		f := origin.Explain(err, in.target.Hostname())
		p.status, p.kind, p.title, p.detail, p.fault, p.cause, p.retry = f.Status, f.Kind, f.Title, f.Detail, f.Fault, f.Cause, f.Retry
		switch {
		case errors.Is(err, origin.ErrProhibited):
			p.refused, p.undecided = record.ByGuard, true
		case errors.Is(err, origin.ErrExhausted):
			p.refused = record.ByLimit
		}
	}
	return p
}

// tooMany answers a request beyond limits.max_requests.
func tooMany() *answer {
	return &answer{
		status: http.StatusServiceUnavailable, kind: "too-many-requests", title: "Too many requests in progress", fault: "proxy_internal_response", retry: time.Second, refused: record.ByLimit,
		detail: "As many requests are in progress as the gate serves at once. The gate's operator can raise limits.max_requests.",
	}
}

// internalError answers a request during which the gate has panicked.
func internalError(id string) *answer {
	return &answer{status: http.StatusInternalServerError, detail: "The gate failed on this request. Its log has the details under the id " + id + ".", fault: "proxy_internal_error"}
}

// skipped says why no page was read, for [Head].
func (p *answer) skipped() string {
	if p.file != nil {
		return "type"
	}
	return "status"
}

// A file is the robots.txt that is enforced.
type file struct {
	header http.Header
	body   string
}

// robotsTxt answers a request for robots.txt with the file that is enforced, so that a client
// with a parser of its own sees the same rules.
func robotsTxt(r *snapshot.Resolution) *answer {
	f := &file{header: http.Header{}}
	code := http.StatusOK
	switch r.State {
	case snapshot.Fresh, snapshot.Stale:
		f.body = r.File.Body()
		f.header.Set("Content-Type", "text/plain") // the bytes are sent unchanged
		if utf8.ValidString(f.body) {
			f.header.Set("Content-Type", "text/plain; charset=utf-8")
		}
		if r.Snapshot.Modified != "" {
			f.header.Set("Last-Modified", r.Snapshot.Modified)
		}
		f.header.Set("Age", strconv.FormatInt(int64(r.Age/time.Second), 10))
	case snapshot.Unavailable:
		if code = r.Snapshot.Status; code < 400 {
			code = http.StatusNotFound // too many redirects count as no robots.txt
		}
	default:
		code = http.StatusServiceUnavailable
		f.header.Set("Retry-After", retrySeconds(r.Retry))
		f.header.Set("Cache-Control", "no-store")
	}
	f.header.Set("Content-Length", strconv.Itoa(len(f.body)))
	return &answer{status: code, file: f}
}

// retrySeconds rounds up: a client that retried too early would be refused again.
func retrySeconds(d time.Duration) string {
	return strconv.Itoa(int(wholeSeconds(d) / time.Second))
}

// wholeSeconds rounds up to whole seconds, at least one.
func wholeSeconds(d time.Duration) time.Duration {
	return time.Duration(max(1, math.Ceil(d.Seconds()))) * time.Second
}
