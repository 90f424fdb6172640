package proxy

import (
	"cmp"
	"context"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"net/url"
	"runtime/debug"
	"strings"
	"time"

	"robotsgate/policy"
	"robotsgate/policy/canonical"
	"robotsgate/policy/pace"
	"robotsgate/proxy/internal/memory"
)

// An exchange is one request on its way through the proxy: its record, and what only the
// proxy needs.
type exchange struct {
	Record
	signals signals

	settings      *Settings         // in force when the request arrived
	transport     http.RoundTripper // of the crawler; nil: settings.Upstream
	target        canonical.Target
	decision      policy.Decision // what Record.Decision points to, once it is made
	turn          *pace.Turn      // of a request that is sent; nil: there is no pace, or the origin has answered
	out           *recorder
	informational informational
	upgrade       bool // it is a WebSocket handshake
	aborted       bool // the response broke off: the connection must too
	isRobots      bool // it asks for robots.txt, which the gate answers
}

type exchangeKey struct{}

// context returns the request's context with the exchange in it.
func (x *exchange) context(r *http.Request) context.Context {
	if d := connOf(r).detector(); d != nil {
		x.out.disconnect = d
		d.Begin(r)
	}
	return context.WithValue(x.forOrigin(r), exchangeKey{}, x)
}

func exchangeOf(r *http.Request) *exchange { return r.Context().Value(exchangeKey{}).(*exchange) }

// serve carries one request through the pipeline, and passes its record to Done. The request
// goes to target, unless refused is the answer already.
func (p *Proxy) serve(w http.ResponseWriter, r *http.Request, s *Settings, target canonical.Target, refused *problem) {
	x := p.newExchange(w, r, s)
	x.out.closeAfter = ambiguousFraming(r)
	defer p.finish(x, r)
	if refused != nil {
		x.out.closeAfter = x.out.closeAfter || x.out.http1 && r.ContentLength != 0 // the rest of its body is not read
		x.URL = requestedURL(r)
		refused.write(r, x)
		return
	}
	x.target, x.URL = target, target.String()
	x.Origin = strings.TrimSuffix(x.URL, target.Path)
	if x.out.http1 && !x.out.memory.TakeHeader(r.Header) { // HTTP/2 has taken it in admitStream
		failure(x, memory.ErrLimit).write(r, x)
		return
	}
	r = r.WithContext(x.context(r))
	// Nothing reads the URL and the Host that the client sent from here on. roundTrip sets
	// both to the target that was decided about.
	r.URL, r.Host = placeholderURL, ""
	p.pipeline.ServeHTTP(x.out, r)
	if x.aborted {
		resetHTTP10(r)
		panic(http.ErrAbortHandler)
	}
}

// placeholderURL is the URL of a request inside goproxy, which would otherwise format the URL
// for a log message that is dropped. goproxy needs a scheme.
var placeholderURL = &url.URL{Scheme: "http"}

// requestedURL returns the URL of a request that cannot be served, without a password, for the
// answer and the log.
func requestedURL(r *http.Request) string {
	sent := r.RequestURI
	if t := connOf(r).tunnel; t != nil && strings.HasPrefix(sent, "/") {
		scheme := "http://"
		if r.TLS != nil {
			scheme = "https://"
		}
		return scheme + cmp.Or(r.Host, t.authority) + sent
	}
	scheme, rest, ok := strings.Cut(sent, "://")
	ends := "/?#"
	if scheme += "://"; !ok { // not a URL, though perhaps meant as one
		scheme, rest, ends = "", sent, "?#"
	}
	end := strings.IndexAny(rest, ends)
	if end < 0 {
		end = len(rest)
	}
	return scheme + rest[strings.LastIndexByte(rest[:end], '@')+1:]
}

func (p *Proxy) newExchange(w http.ResponseWriter, r *http.Request, s *Settings) *exchange {
	both := &struct { // one allocation: both end together
		exchange
		recorder
	}{}
	x := &both.exchange
	x.Start, x.Method, x.settings, x.Config = time.Now(), r.Method, s, s.Config
	x.ID = newID()
	x.out = &both.recorder
	x.out.begin(w, r, p)
	if a, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		x.Client = a.Addr().Unmap()
	}
	c := connOf(r)
	x.Tunnel, x.out.client, x.out.memory.Client = c.tunnel != nil && c.tunnel.authority != "", c.client.Buffer(), c.client.Memory
	return x
}

// newID returns 128 random bits, which need not be hard to guess, as 26 characters of base32.
func newID() string {
	var bits [16]byte
	binary.LittleEndian.PutUint64(bits[:8], rand.Uint64())
	binary.LittleEndian.PutUint64(bits[8:], rand.Uint64())
	var id [26]byte
	idEncoding.Encode(id[:], bits[:])
	return string(id[:])
}

var idEncoding = base32.StdEncoding.WithPadding(base32.NoPadding)

// finish ends an exchange, also after a panic: a panic costs the request a 500, or its
// connection if the answer has begun, but never the process.
func (p *Proxy) finish(x *exchange, r *http.Request) {
	w, cause := x.out, recover()
	x.answered(nil) // by now it has been, or never will
	if cause != nil && !isAbort(cause) {
		x.Error = "internal error"
		p.Log.Error("panic while serving a request; please report it", "id", x.ID, "origin", x.Origin, "panic", cause, "stack", string(debug.Stack()))
		if !w.wrote {
			clear(w.Header()) // of an answer that was not sent
			(&problem{status: http.StatusInternalServerError, detail: "The gate failed on this request. Its log has the details under the id " + x.ID + ".", fault: "proxy_internal_error"}).write(r, x)
			cause = nil
		}
	}
	if w.disconnect != nil {
		w.disconnect.Stop()
	}
	w.closeHijacked()
	defer w.memory.Release()
	w.release(r, p.Limits.IdleTimeout)
	x.Status, x.Bytes = w.status, w.bytes
	if !w.answered.IsZero() {
		x.Answered = w.answered.Sub(x.Start)
	}
	x.Duration = time.Since(x.Start)
	p.Done(&x.Record)
	if cause != nil {
		panic(http.ErrAbortHandler)
	}
}

// ambiguousFraming reports whether two readers may frame a request differently: net/http does
// not tell whether there was a Content-Length beside the chunks, or chunks in HTTP/1.0. The
// connection ends with the answer (RFC 9112, 6.1), so that no rest of the body is read as a
// request.
func ambiguousFraming(r *http.Request) bool {
	switch {
	case r.ProtoMajor > 1:
		return false
	case r.ProtoAtLeast(1, 1):
		return len(r.TransferEncoding) > 0
	default:
		return r.ContentLength != 0 || r.Method != http.MethodGet && r.Method != http.MethodHead
	}
}

// resetHTTP10 resets the connection of an HTTP/1.0 client whose response broke off: there the
// end of the connection may be the end of the response, so an orderly close would make it look
// complete. In TLS the connection underneath is reset, before crypto/tls sends close_notify.
func resetHTTP10(r *http.Request) {
	if r.ProtoMajor == 1 && !r.ProtoAtLeast(1, 1) {
		connOf(r).client.Reset()
	}
}

func isAbort(cause any) bool {
	err, ok := cause.(error)
	return ok && errors.Is(err, http.ErrAbortHandler)
}
