package proxy

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"strings"
	"time"

	"robotsgate/policy"
	"robotsgate/policy/robotstag"
)

// An Exchange is one request and what became of it: the record that the audit
// log and the metrics are made from.
type Exchange struct {
	ID      string
	Start   time.Time
	Client  netip.Addr
	Method  string
	URL     string // canonical; as sent by the client where it could not be read
	Crawler string // name; empty if it was not asked for
	// Decision is nil where none was made: a malformed request, a prohibited
	// destination, a name that does not resolve.
	Decision *policy.Decision
	Tags     []robotstag.Rule // that bind the crawler
	// Remembered rules bind it too: of an earlier answer, where this one has no
	// head to read.
	Remembered []robotstag.Rule
	Head       Head   // whether the page's head was read
	Error      string // what went wrong, if something did
	Status     int
	Bytes      int64 // of the response's body, as passed on
	Tunnel     bool  // inside a CONNECT
	Duration   time.Duration
	Upstream   time.Duration // until the origin's response head
	Decided    time.Duration // until the decision

	target  policy.Target
	out     *recorder
	control *http.ResponseController
	upgrade bool // it asks for a WebSocket
	aborted bool // the response broke off: so must the connection
}

type exchangeKey struct{}

func exchangeOf(r *http.Request) *Exchange { return r.Context().Value(exchangeKey{}).(*Exchange) }

// serve carries one request through the pipeline, and its record to Done. The
// target is where the request goes, unless refused says why that can't be told.
func (p *Proxy) serve(w http.ResponseWriter, r *http.Request, target policy.Target, refused *problem) {
	x := p.newExchange(r)
	out := &recorder{ResponseWriter: w, open: &p.open}
	defer p.finish(x, r, out)
	if refused != nil {
		x.URL = asked(r)
		refused.write(out, r, x)
		return
	}
	x.target, x.URL, x.out, x.control = target, target.String(), out, http.NewResponseController(w)
	r = r.WithContext(context.WithValue(r.Context(), exchangeKey{}, x))
	// From here on nothing reads what the client sent as the URL and the Host.
	r.URL, r.Host = target.URL(), target.Host
	p.pipeline.ServeHTTP(out, r)
	if x.aborted {
		panic(http.ErrAbortHandler)
	}
}

// asked is what a request that can't be served wanted, for the answer and the
// log: without a password.
func asked(r *http.Request) string {
	url := r.RequestURI
	if t, ok := r.Context().Value(tunnelKey{}).(*tunnel); ok && strings.HasPrefix(url, "/") {
		scheme := "http://"
		if r.TLS != nil {
			scheme = "https://"
		}
		return scheme + cmp.Or(r.Host, t.authority) + url
	}
	scheme, rest, ok := strings.Cut(url, "://")
	if !ok {
		return url
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	return scheme + "://" + rest[strings.LastIndexByte(rest[:end], '@')+1:]
}

func (p *Proxy) newExchange(r *http.Request) *Exchange {
	x := &Exchange{ID: rand.Text(), Start: time.Now(), Method: r.Method}
	if a, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		x.Client = a.Addr().Unmap()
	}
	_, x.Tunnel = r.Context().Value(tunnelKey{}).(*tunnel)
	return x
}

// finish ends an exchange, also after a panic: that costs the request a 500, or
// its connection where the answer has begun, but never the process.
func (p *Proxy) finish(x *Exchange, r *http.Request, w *recorder) {
	cause := recover()
	if cause != nil && !isAbort(cause) {
		x.Error = "internal error"
		p.Log.Error("panic while serving a request; please report it", "id", x.ID, "origin", x.target.Origin(), "panic", cause, "stack", string(debug.Stack()))
		if !w.wrote {
			(&problem{status: http.StatusInternalServerError, detail: "The gate failed on this request. Its log has the details under the id " + x.ID + ".", fault: "proxy_internal_error"}).write(w, r, x)
			cause = nil
		}
	}
	w.closeHijacked()
	x.Status, x.Bytes = w.status, w.bytes
	x.Duration = time.Since(x.Start)
	p.Done(x)
	if cause != nil {
		panic(http.ErrAbortHandler)
	}
}

func isAbort(cause any) bool {
	err, ok := cause.(error)
	return ok && errors.Is(err, http.ErrAbortHandler)
}

// A recorder passes a response on to the client and takes down what it was. It
// has no ReadFrom on purpose: io.Copy would use it, at the cost of one more
// write for every small body.
type recorder struct {
	http.ResponseWriter
	open     *openConns
	hijacked net.Conn
	wrote    bool
	status   int
	bytes    int64
}

// Unwrap is for http.ResponseController.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *recorder) WriteHeader(status int) {
	if !w.wrote && (status >= 200 || status == http.StatusSwitchingProtocols) {
		w.wrote, w.status = true, status
		if h := w.Header(); len(h["Content-Type"]) == 0 {
			h["Content-Type"] = nil // keeps net/http from guessing one
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *recorder) Write(p []byte) (int, error) {
	if !w.wrote {
		w.WriteHeader(http.StatusOK)
	}
	n, err := w.ResponseWriter.Write(p)
	w.bytes += int64(n)
	return n, err
}

// Flush sends what is buffered.
func (w *recorder) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// Hijack hands out the connection, which is closed when the exchange ends:
// goproxy leaves it open.
func (w *recorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, fmt.Errorf("the connection can't be switched: %w", err)
	}
	w.hijacked = conn
	w.open.add(conn)
	return conn, rw, nil
}

func (w *recorder) closeHijacked() {
	if w.hijacked != nil {
		w.hijacked.Close()
		w.open.remove(w.hijacked)
	}
}
