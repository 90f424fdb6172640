package proxy

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"robotsgate/policy"
	"robotsgate/policy/snapshot"
	"robotsgate/proxy/internal/memory"
	"robotsgate/proxy/internal/origin"
)

// A problem is an answer of the gate itself: a refusal, or an error (RFC 9457).
type problem struct {
	status     int
	kind       string // last part of the type URN; empty: fault
	title      string // empty: the text of the status
	detail     string // sentences: what happened, and what the reader can do
	fault      string // error type in Proxy-Status (RFC 9209, 2.3)
	cause      string // details in Proxy-Status
	retry      time.Duration
	closeAfter bool    // close the connection after this answer
	refused    Refusal // the kind; empty: the request failed
}

// cause returns why the decision denies, in a few words.
func (x *Record) cause() string {
	switch d := x.Decision; d.Reason {
	case policy.ByRule:
		return "robots.txt line " + strconv.Itoa(d.Rule.Line) + ": " + d.Rule.String()
	case policy.IsUnreachable:
		return "robots.txt unreachable: " + d.Robots.Snapshot.Error
	case policy.TooComplex:
		return "robots.txt takes too many steps for this URL"
	case policy.ByOverride:
		return "operator's override: " + d.Note
	case policy.ByUsage:
		return x.Statement
	}
	return string(x.Decision.Reason)
}

// refusal answers a denied request.
func refusal(x *exchange) *problem {
	d := x.Decision
	p := &problem{status: cmp.Or(d.Crawler.DenyStatus, http.StatusForbidden), kind: string(d.Reason), title: "Refused by robots rules", fault: "http_request_denied", cause: x.cause(), refused: Refusal(d.Reason)}
	switch d.Reason {
	case policy.ByRule:
		line, rule := strconv.Itoa(d.Rule.Line), d.Rule.String()
		p.detail = "Line " + line + " of " + d.URL + " says " + strconv.Quote(rule) + ", in the group for " + d.Group.Written() + "."
	case policy.IsUnreachable:
		p.status, p.title, p.retry = x.settings.Engine.UnreachableStatus(), "robots.txt is unreachable", d.Robots.Retry
		why := d.Robots.Snapshot.Error
		p.detail = fmt.Sprintf("%s could not be fetched (%s). Until it can be fetched, all requests to this origin are denied (RFC 9309, 2.3.1.4).", d.URL, why)
	case policy.TooComplex:
		p.title = "robots.txt is too complex for this URL"
		p.detail = "To compare this URL with all rules of " + d.URL + ", in the group for " + d.Group.Written() + ", takes more steps than a decision may, so it is denied. A shorter URL may be decided."
	case policy.ByOverride:
		p.title = "Refused by the operator"
		p.detail = "An override of this gate denies this request: " + d.Note + "."
	case policy.ByUsage:
		p.title, p.detail = x.explainReserved()
	}
	if d.ReadAs != "" {
		p.detail += " Common servers read this path as " + strconv.Quote(d.ReadAs) + "."
	}
	return p
}

// failure answers a request that failed: the origin, or its robots.txt, could not be reached.
func failure(x *exchange, err error) *problem {
	x.Error = err.Error()
	p := &problem{status: http.StatusBadGateway, title: "The origin could not be reached"}
	var dns *net.DNSError
	var op *net.OpError
	var timeout net.Error
	var certificate *tls.CertificateVerificationError
	switch {
	case x.out.upload != nil && x.out.upload.Limit.Fired():
		p.status, p.title, p.fault, p.closeAfter = http.StatusRequestTimeout, "The request did not come to its end", "http_request_error", x.out.http1
		p.detail = "The client was silent for longer than limits.idle_timeout in the middle of its request."
	case x.out.upload != nil && x.out.upload.Err() != nil:
		p.status, p.title, p.fault, p.closeAfter = http.StatusBadRequest, "The request did not come to its end", "http_request_error", x.out.http1
		p.detail = "The request's body was not understood: " + innermost(x.out.upload.Err()) + "."
	case errors.Is(err, snapshot.ErrProhibited):
		x.Decision = nil // no decision applies to a prohibited destination
		why := innermost(err)
		return &problem{status: http.StatusForbidden, kind: "prohibited", title: "Destination prohibited", fault: "destination_ip_prohibited", cause: why, refused: ByGuard,
			detail: strings.TrimSuffix("This gate does not connect there: "+why+". "+origin.Advice(err), " ")}
	case errors.Is(err, snapshot.ErrUnsigned):
		p.status, p.title, p.fault = http.StatusInternalServerError, "The request could not be signed", "proxy_internal_error"
		p.detail = "The requests of this crawler are signed, and no signature could be made for this one, so it was not sent: " + innermost(err) + "."
	case errors.Is(err, policy.ErrHiddenDots):
		p = badRequest(err)
	case errors.Is(err, snapshot.ErrBusy):
		p.status, p.kind, p.title, p.fault, p.retry, p.refused = http.StatusServiceUnavailable, "robots-busy", "Too many large robots.txt files", "proxy_internal_response", time.Second, ByLimit
		p.detail = "The gate is reading as many large robots.txt files as it may, and has not come to this origin's. Try again."
	case errors.Is(err, snapshot.ErrExhausted):
		s := cmp.Or(origin.ShortageIn(err), &origin.Shortage{What: "resources", Remedy: "find out more in its log"})
		p.status, p.kind, p.title, p.fault, p.retry = http.StatusServiceUnavailable, "out-of-resources", "The gate is out of "+s.What, "proxy_internal_error", 2*time.Second
		p.refused = ByLimit
		p.cause = "out of " + s.What
		p.detail = "The gate could not open a connection, because it is out of " + s.What + ". This says nothing about the origin: try again. The gate's operator can " + s.Remedy + "."
	case errors.Is(err, policy.ErrCostly):
		p.status, p.kind, p.title, p.fault, p.retry, p.refused = http.StatusServiceUnavailable, "decisions-busy", "Too many costly decisions", "proxy_internal_response", time.Second, ByLimit
		p.detail = "The rules of this origin take long for this URL, and too many such requests wait already. Try again."
	case errors.Is(err, memory.ErrLimit):
		p.status, p.kind, p.title, p.fault, p.retry, p.refused = http.StatusServiceUnavailable, "too-many-requests", "Too many requests in progress", "proxy_internal_response", time.Second, ByLimit
		p.detail = "This client's requests in progress take as much of the gate's memory as they may. Try again when some have ended."
	case errors.Is(err, snapshot.ErrParent):
		p.title, p.fault, p.cause = "The parent proxy could not be reached", "proxy_configuration_error", innermost(err)
		p.detail = "The proxy that this gate sends everything through can't be reached: " + innermost(err) + ". Check egress.proxy."
	case errors.Is(err, snapshot.ErrNoHost), errors.As(err, &dns):
		p.fault, p.detail = "dns_error", "The name "+x.target.Hostname()+" does not resolve. Check its spelling, and the DNS of the gate's machine."
	case errors.Is(err, errInvalidResponse):
		p.fault, p.detail = "http_protocol_error", "The origin's answer has a status or a field that it must not have."
	case errors.Is(err, context.Canceled):
		p.fault, p.detail = "connection_terminated", "The request was given up before the origin answered."
	case errors.As(err, &op) && op.Op == "dial" && op.Timeout():
		p.status, p.fault, p.detail = http.StatusGatewayTimeout, "connection_timeout", "The origin did not accept a connection within egress.dial_timeout."
	case errors.As(err, &timeout) && timeout.Timeout():
		p.status, p.fault, p.detail = http.StatusGatewayTimeout, "http_response_timeout", "The origin did not answer in time."
	case errors.Is(err, syscall.ECONNREFUSED):
		p.fault, p.detail = "connection_refused", "The origin refuses connections."
	case errors.As(err, &certificate):
		p.fault, p.cause = "tls_certificate_error", innermost(err)
		p.detail = "The origin's certificate is not trusted: " + innermost(err) + ". If it is your own, add its root with egress.ca_file."
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		p.fault, p.detail = "connection_terminated", "The origin closed the connection without a complete answer."
	default:
		p.fault, p.detail = "destination_unavailable", "The origin could not be reached, or its answer was not understood."
	}
	return p
}

// innermost returns the text of the root error: the wrapping ones repeat what the client knows.
func innermost(err error) string {
	for {
		switch u := err.(type) {
		case interface{ Unwrap() error }:
			if inner := u.Unwrap(); inner != nil {
				err = inner
				continue
			}
		case interface{ Unwrap() []error }:
			if all := u.Unwrap(); len(all) > 0 {
				err = all[len(all)-1]
				continue
			}
		}
		return strings.TrimPrefix(err.Error(), "x509: ")
	}
}

// response returns the problem as a response to r. Its header is set on x.out.
func (p *problem) response(r *http.Request, x *exchange) *http.Response {
	if x.Refused = p.refused; p.refused != "" {
		x.Why = cmp.Or(p.cause, p.detail)
	} else {
		x.Fault = p.fault
	}
	body, contentType := p.body(r, x)
	fixed := [...]string{contentType, strconv.Itoa(len(body)), "no-store", "Accept"}
	h := x.out.Header()
	h["Content-Type"] = fixed[0:1:1]
	h["Content-Length"] = fixed[1:2:2]
	h["Cache-Control"] = fixed[2:3:3]
	h["Vary"] = fixed[3:4:4] // which chooses the form
	if p.retry > 0 {
		h.Set("Retry-After", retrySeconds(p.retry))
	}
	if p.closeAfter {
		h.Set("Connection", "close")
	}
	if p.status == http.StatusMethodNotAllowed {
		h.Set("Allow", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS, CONNECT")
	}
	if p.status == http.StatusProxyAuthRequired {
		h.Set("Proxy-Authenticate", loginChallenge)
	}
	status(h, p.fault, p.cause)
	if x.Decision != nil && x.Head.State == "" { // else it is that of the response that is withheld
		x.Head = Head{State: "skipped", Why: "status"}
	}
	annotate(h, x)
	return reply(r, p.status, body)
}

// reply returns a response of the gate itself, without header.
func reply(r *http.Request, status int, body []byte) *http.Response {
	if r.Method == http.MethodHead {
		body = nil
	}
	own := &ownBody{}
	own.Reset(body)
	return &http.Response{
		StatusCode: status, ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Body: own, ContentLength: int64(len(body)),
	}
}

// An ownBody is the body of a response of the gate itself.
type ownBody struct{ bytes.Reader }

func (*ownBody) Close() error { return nil }

// maxDrain bounds what is read of a refused request's body, in bytes.
const maxDrain = 16 << 20

// drain reads the body of a request that the gate answers itself: many clients send all of it
// before they read, and would see a broken connection in place of the answer. A client that
// waits for a 100 gets none.
func (p *Proxy) drain(x *exchange, r *http.Request) {
	if r.ContentLength == 0 || hasToken(r.Header["Expect"], "100-continue") {
		return
	}
	_ = x.out.control.SetReadDeadline(time.Now().Add(p.Limits.HeaderTimeout))
	if _, err := io.CopyN(io.Discard, r.Body, maxDrain); err != io.EOF {
		x.out.closeAfter = x.out.http1 // the rest is not read
	}
}

// write answers a request that goproxy does not handle, such as CONNECT.
func (p *problem) write(r *http.Request, x *exchange) {
	resp := p.response(r, x)
	x.out.WriteHeader(resp.StatusCode)
	io.Copy(x.out, resp.Body)
}

// retrySeconds rounds up: a client that retried too early would be refused again.
func retrySeconds(d time.Duration) string {
	return strconv.Itoa(max(1, int(math.Ceil(d.Seconds()))))
}
