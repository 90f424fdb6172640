package proxy

import (
	"errors"
	"io"
	"maps"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"time"

	"robotsgate/htmlmeta"
	"robotsgate/policy/robotstag"
	"robotsgate/policy/snapshot"
	"robotsgate/policy/tagcache"
	"robotsgate/policy/usage"
	"robotsgate/proxy/internal/body"
	"robotsgate/proxy/internal/memory"
	"robotsgate/proxy/internal/netconn"
)

// roundTrip sends an allowed request and annotates the response. It is goproxy's RoundTripper,
// since a body that is replaced later loses its Content-Length. It never fails: a failure is a
// response too.
func (p *Proxy) roundTrip(x *exchange, r *http.Request) *http.Response {
	r.URL, r.Host = x.target.URL(), x.target.Host
	x.Sent = time.Since(x.Start)
	resp, err := p.send(x, r)
	x.Upstream = time.Since(x.Start)
	x.answered(resp)
	if err != nil {
		return failure(x, err).response(r, x)
	}
	if invalidResponse(x, resp) {
		resp.Body.Close()
		return failure(x, errInvalidResponse).response(r, x)
	}
	if resp.StatusCode == http.StatusNotModified && resp.ProtoMajor == 2 {
		// Its Content-Length is that of the 200 (RFC 9110, 8.6; RFC 9113, 8.1.1). Transport
		// would report that the body is missing.
		resp.Body.Close()
		resp.Body = http.NoBody
	}
	if !x.out.memory.TakeHeader(resp.Header) {
		resp.Body.Close()
		return failure(x, memory.ErrLimit).response(r, x)
	}
	// These are read before anything is removed: Connection may name them.
	contentType, contentEncoding := htmlmeta.ContentType(resp.Header["Content-Type"]), strings.Join(resp.Header["Content-Encoding"], ", ")
	x.signals.receive(resp.Header)
	tags := robotstag.ParseHeader(x.signals.received["Robots-Tag"], x.signals.received["X-Robots-Tag"])
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return p.switchProtocols(x, r, resp, tags)
	}
	dropHopByHop(resp.Header)
	dropOwn(resp.Header)
	dropTrailer(resp.Trailer)
	delete(resp.Header, "Alt-Svc") // with it clients would bypass the gate
	if resp.StatusCode == http.StatusNoContent {
		delete(resp.Header, "Content-Length") // RFC 9110, 8.6
	}

	body := newStream(x, resp, p.Silence)
	if x.Head.Why = x.skipReason(r, resp, contentType); x.Head.Why != "" {
		x.Head.State = "skipped"
	} else {
		tags = robotstag.Union(tags, p.readHead(x, r.Context(), body, contentType, contentEncoding))
		if x.Head.Why != "timeout" { // then the body may still be read
			dropTrailer(resp.Trailer) // a short body has been read to its end
		}
	}
	resp.Body = body
	x.Tags, x.Head.Cut = tags.For(x.Decision.Tokens...), tags.Truncated
	p.remember(x, r, resp, contentType, tags)
	x.state()
	if pr := x.reserved(r, resp, contentType); pr != nil {
		return pr.inPlaceOf(resp, body, r, x)
	}
	x.moveHeader(resp)
	annotate(x.out.Header(), x)
	return resp
}

// moveHeader moves a response's header to the client's ResponseWriter. goproxy would copy it
// field by field.
func (x *exchange) moveHeader(resp *http.Response) {
	maps.Copy(x.out.Header(), resp.Header)
	resp.Header = nil
}

// send sends a request and waits for the head of its answer.
func (p *Proxy) send(x *exchange, r *http.Request) (*http.Response, error) {
	defer x.informational.end()
	if u := x.out.upload; u != nil && hasToken(r.Header["Expect"], "100-continue") {
		u.Proceed = x.informational.sendContinue
	}
	if x.transport != nil {
		return x.transport.RoundTrip(r)
	}
	return x.settings.Upstream.RoundTrip(r)
}

// remember stores the rules of a complete response, and adds the stored rules to a response
// that has no page to read, such as a 304, if they are those of its variant.
func (p *Proxy) remember(x *exchange, r *http.Request, resp *http.Response, contentType string, tags robotstag.Tags) {
	switch {
	case p.Remembered == nil:
	case r.Method == http.MethodGet && resp.StatusCode == http.StatusOK:
		if x.Head.State != "partial" && !x.signals.unknown { // a rule may be missing
			p.Remembered.Put(x.URL, r.Header, resp.Header, htmlmeta.MediaType(contentType), tags, usage.HeadOf(x.signals.metas, x.signals.links))
		}
	case resp.StatusCode == http.StatusNotModified:
		// The origin has just confirmed them, whatever their age.
		if seen, ok := p.Remembered.Get(x.URL, r.Header, resp.Header, ""); ok {
			x.addRemembered(seen)
		}
	case r.Method == http.MethodHead && resp.StatusCode == http.StatusOK, resp.StatusCode == http.StatusPartialContent:
		if seen, ok := p.Remembered.Get(x.URL, r.Header, resp.Header, htmlmeta.MediaType(contentType)); ok && time.Now().Before(seen.Until) {
			x.addRemembered(seen)
		}
	}
}

// addRemembered adds the remembered rules that the response itself does not repeat.
func (x *exchange) addRemembered(seen *tagcache.Page) {
	x.signals.seen = seen.Head
	x.Head = Head{State: "remembered", Age: time.Since(seen.At), Cut: x.Head.Cut || seen.Tags.Truncated}
	for _, rule := range seen.Tags.For(x.Decision.Tokens...) {
		if !slices.Contains(x.Tags, rule) {
			x.Remembered = append(x.Remembered, rule)
		}
	}
}

var errInvalidResponse = errors.New("the origin's answer has a status or a field that it must not have")

// invalidResponse reports a response that must not be forwarded: with a status out of range,
// with a Content-Length that net/http did not understand, or with a switch of protocols that
// the client did not ask for, after which its requests would reach the origin undecided.
func invalidResponse(x *exchange, resp *http.Response) bool {
	switch code := resp.StatusCode; {
	case !trimNames(resp.Header):
		return true
	case code == http.StatusSwitchingProtocols:
		return !x.upgrade || !hasToken(resp.Header["Upgrade"], "websocket") || !hasToken(resp.Header["Connection"], "upgrade")
	case code < 200 || code > 999:
		return true
	case resp.ProtoMajor < 2:
		return false // net/http has checked it
	default:
		// ContentLength is -1 if the field was not understood, which must not equal a field "-1".
		return slices.ContainsFunc(resp.Header["Content-Length"], func(n string) bool {
			return resp.ContentLength < 0 || n != strconv.FormatInt(resp.ContentLength, 10)
		})
	}
}

// trimNames removes the white space before the colon that net/http leaves in the names of a
// response's fields (RFC 9112, 5.1). It reports false if such a field frames the response.
func trimNames(h http.Header) bool {
	for name, values := range h {
		plain := strings.TrimRight(name, " \t")
		if plain == name {
			continue
		}
		plain = textproto.CanonicalMIMEHeaderKey(plain)
		if framing[strings.ToLower(plain)] {
			return false
		}
		delete(h, name)
		h[plain] = append(h[plain], values...)
	}
	return true
}

// switchProtocols annotates the response to a WebSocket handshake, or withholds it if its header
// reserves what the crawler fetches for. goproxy must not see Connection and Upgrade, since it would
// relay the tunnel without an idle limit; the recorder adds them.
func (p *Proxy) switchProtocols(x *exchange, r *http.Request, resp *http.Response, tags robotstag.Tags) *http.Response {
	dropHopByHop(resp.Header)
	dropOwn(resp.Header)
	delete(resp.Header, "Alt-Svc")
	resp.Trailer = nil
	x.Tags, x.Head = tags.For(x.Decision.Tokens...), Head{State: "skipped", Why: "status"}
	x.state()
	if pr := x.reserved(r, resp, ""); pr != nil {
		resp.Body.Close()
		return pr.response(r, x)
	}
	annotate(resp.Header, x)
	resp.Body = &switched{resp.Body, x, body.Relay{Idle: p.Limits.IdleTimeout, Silence: p.Silence, Together: true}}
	return resp
}

// A switched body is the connection to the origin after a handshake.
type switched struct {
	io.ReadCloser
	x     *exchange
	relay body.Relay
}

// WriteTo relays the tunnel until either side closes its connection. io.Copy calls it when the
// handshake has been answered.
func (s *switched) WriteTo(io.Writer) (int64, error) {
	origin, ok := s.ReadCloser.(io.ReadWriteCloser)
	if !ok {
		return 0, errors.New("the connection to the origin is not writable")
	}
	conn, rw, err := s.x.out.Hijack()
	if err != nil {
		return 0, err
	}
	s.x.out.bytes = s.relay.Between(netconn.Buffered(conn, rw.Reader), origin)
	return s.x.out.bytes, nil
}

// skipReason returns why a response has no head to read, "" if it has one.
func (x *exchange) skipReason(r *http.Request, resp *http.Response, contentType string) string {
	switch {
	case !x.settings.Tags.HTML:
		return "off"
	case r.Method == http.MethodHead:
		return "method"
	case resp.StatusCode == http.StatusNoContent, resp.StatusCode == http.StatusNotModified, isPart(resp):
		return "status"
	case !htmlmeta.MayBePage(contentType):
		return "type"
	}
	return ""
}

// isPart reports whether a response has only a part of a page: a range, or the differences to an earlier one, which the
// client asks for with A-IM (RFC 3229, 10.4.1).
func isPart(resp *http.Response) bool {
	return resp.StatusCode == http.StatusPartialContent || resp.StatusCode == http.StatusIMUsed
}

// robotsTxt answers a request for robots.txt with the file that is enforced, so that a client
// with a parser of its own sees the same rules.
func (p *Proxy) robotsTxt(r *http.Request, x *exchange) *http.Response {
	st := x.Decision.Robots
	x.Head = Head{State: "skipped", Why: "type"}
	h := x.out.Header()
	var body string
	code := http.StatusOK
	switch st.State {
	case snapshot.Fresh, snapshot.Stale:
		body = st.File.Body()
		charset := "utf-8" // the bytes are sent unchanged
		if strings.HasPrefix(body, "\xff\xfe") || strings.HasPrefix(body, "\xfe\xff") {
			charset = "utf-16"
		}
		h.Set("Content-Type", "text/plain; charset="+charset)
		if st.Snapshot.Modified != "" {
			h.Set("Last-Modified", st.Snapshot.Modified)
		}
		h.Set("Age", strconv.FormatInt(int64(st.Age/time.Second), 10))
	case snapshot.Unavailable:
		if code = st.Snapshot.Status; code < 400 {
			code = http.StatusNotFound // too many redirects count as no robots.txt
		}
	default:
		code = http.StatusServiceUnavailable
		h.Set("Retry-After", retrySeconds(st.Retry))
		h.Set("Cache-Control", "no-store")
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	annotate(h, x)
	return reply(r, code, []byte(body))
}
