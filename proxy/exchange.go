package proxy

import (
	"cmp"
	"crypto/rand"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"runtime/debug"
	"strings"
	"time"

	"robotsgate/policy"
	"robotsgate/proxy/internal/memory"
)

// An exchange is one request on its way through the proxy: its record, and what only the
// proxy needs.
type exchange struct {
	Record
	signals signals

	settings      *Settings // in force when the request arrived
	names         *SettingNames
	target        policy.Target
	out           *recorder
	informational informational
	visit         *visit // its context, if a presence looks after it
	upgrade       bool   // it is a WebSocket handshake
	aborted       bool   // the response broke off: the connection must too
	isRobots      bool   // it asks for robots.txt, which the gate answers
}

type exchangeKey struct{}

func exchangeOf(r *http.Request) *exchange { return r.Context().Value(exchangeKey{}).(*exchange) }

// serve carries one request through the pipeline, and its record to Done. The
// target is where the request goes, unless refused says why that can't be told.
func (p *Proxy) serve(w http.ResponseWriter, r *http.Request, s *Settings, target policy.Target, refused *problem) {
	x := p.newExchange(w, r, s)
	x.out.last = doubtful(r)
	defer p.finish(x, r)
	if refused != nil {
		x.out.last = x.out.last || x.out.http1 && r.ContentLength != 0 // its body is not waited for
		x.URL = asked(r)
		refused.write(r, x)
		return
	}
	x.target, x.URL = target, target.String()
	if x.out.http1 && !x.out.memory.TakeHeader(r.Header) { // that of HTTP/2 has been taken
		failure(x, memory.ErrLimit).write(r, x)
		return
	}
	r = r.WithContext(x.attend(r))
	// From here on nothing reads what the client sent as the URL and the Host; roundTrip sets
	// what is sent.
	r.URL, r.Host = hidden, ""
	p.pipeline.ServeHTTP(x.out, r)
	if x.aborted {
		breakOff(r)
		panic(http.ErrAbortHandler)
	}
}

// hidden stands for the URL while goproxy has a request: it would put it together for a log
// that says nothing. It wants a scheme.
var hidden = &url.URL{Scheme: "http"}

// asked is what a request that can't be served wanted, for the answer and the
// log: without a password.
func asked(r *http.Request) string {
	sent := r.RequestURI
	if t, ok := r.Context().Value(tunnelKey{}).(*tunnel); ok && strings.HasPrefix(sent, "/") {
		scheme := "http://"
		if r.TLS != nil {
			scheme = "https://"
		}
		return scheme + cmp.Or(r.Host, t.authority) + sent
	}
	scheme, rest, ok := strings.Cut(sent, "://")
	ends := "/?#"
	if scheme += "://"; !ok { // it is no URL, though it may have been meant for one
		scheme, rest, ends = "", sent, "?#"
	}
	end := strings.IndexAny(rest, ends)
	if end < 0 {
		end = len(rest)
	}
	return scheme + rest[strings.LastIndexByte(rest[:end], '@')+1:]
}

func (p *Proxy) newExchange(w http.ResponseWriter, r *http.Request, s *Settings) *exchange {
	both := &struct { // which end together
		exchange
		recorder
		visit
	}{}
	x := &both.exchange
	x.Start, x.Method, x.settings, x.Config = time.Now(), r.Method, s, s.Config
	x.names = &p.Names
	x.ID = rand.Text() // 26 characters of base32 (RFC 4648, 6)
	x.out, x.visit = &both.recorder, &both.visit
	x.out.begin(w, r, p)
	if a, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		x.Client = a.Addr().Unmap()
	}
	client, tunnelled := comesBy(r)
	if x.Tunnel = tunnelled; client != nil {
		x.out.client, x.out.presence, x.out.memory.Client = client.easy(), &client.presence, client.memory
	}
	return x
}

// finish ends an exchange, also after a panic: that costs the request a 500, or
// its connection where the answer has begun, but never the process.
func (p *Proxy) finish(x *exchange, r *http.Request) {
	w, cause := x.out, recover()
	if cause != nil && !isAbort(cause) {
		x.Error = "internal error"
		p.Log.Error("panic while serving a request; please report it", "id", x.ID, "origin", x.target.Origin(), "panic", cause, "stack", string(debug.Stack()))
		if !w.wrote {
			clear(w.Header()) // what of an answer was in it
			(&problem{status: http.StatusInternalServerError, detail: "The gate failed on this request. Its log has the details under the id " + x.ID + ".", fault: "proxy_internal_error"}).write(r, x)
			cause = nil
		}
	}
	w.closeHijacked()
	x.visit.end()
	defer w.memory.Release()
	w.letGo(r, p.Limits.IdleTimeout)
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

// doubtful reports requests whose framing two readers may understand differently:
// net/http does not tell whether there was a Content-Length beside the chunks, or
// chunks in HTTP/1.0. Their connections end with the answer (RFC 9112, 6.1), so that
// nothing behind them is taken for a request.
func doubtful(r *http.Request) bool {
	switch {
	case r.ProtoMajor > 1:
		return false
	case r.ProtoAtLeast(1, 1):
		return len(r.TransferEncoding) > 0
	default:
		return r.ContentLength != 0 || r.Method != http.MethodGet && r.Method != http.MethodHead
	}
}

// breakOff ends a client's connection in a way that HTTP/1.0 understands: where the
// end of the connection is that of the response, an orderly end would make it look
// complete. In TLS it is the connection underneath that has to go, before crypto/tls
// says goodbye in order.
func breakOff(r *http.Request) {
	if c := clientOf(r); c != nil && r.ProtoMajor == 1 && !r.ProtoAtLeast(1, 1) {
		c.reset()
	}
}

func isAbort(cause any) bool {
	err, ok := cause.(error)
	return ok && errors.Is(err, http.ErrAbortHandler)
}
