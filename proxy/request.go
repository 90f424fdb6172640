package proxy

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"

	"robotsgate/policy/canonical"
	"robotsgate/proxy/internal/memory"
)

// serveOuter serves requests that clients send to the gate's own address.
func (p *Proxy) serveOuter(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodConnect:
		p.connect(w, r)
	case strings.HasPrefix(r.RequestURI, "/"):
		p.serveOwn(w, r)
	default:
		// The URL names the destination, and Host is ignored (RFC 9112, 3.2.2).
		target, err := canonical.ParseURL(r.RequestURI)
		refused := checkRequest(r, err)
		if refused == nil && isOwn(target) {
			p.serveOwn(w, r)
			return
		}
		p.serve(w, r, p.settings.Load(), target, refused)
	}
}

// serveInner serves requests inside tunnels. CONNECT, SNI and Host must name one origin:
// otherwise a client could be allowed at one origin and reach another.
func (p *Proxy) serveInner(w http.ResponseWriter, r *http.Request) {
	t := connOf(r).tunnel
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	if t.port != "" {
		p.serveInRedirected(w, r, t, scheme)
		return
	}
	var target canonical.Target
	var err error
	absolute := !strings.HasPrefix(r.RequestURI, "/")
	if absolute {
		target, err = canonical.ParseURL(r.RequestURI)
	} else {
		host := r.Host
		if !r.ProtoAtLeast(1, 1) {
			host = cmp.Or(host, t.authority) // HTTP/1.0 need not send Host
		}
		target, err = canonical.ParseTarget(scheme, host, r.RequestURI)
	}
	elsewhere := target.Origin() != t.leadsTo(scheme)
	refused := checkRequest(r, err)
	switch {
	case refused != nil:
	case elsewhere && absolute:
		refused = checkRequest(r, errors.New("the URL names another origin than the tunnel's CONNECT"))
	case elsewhere, r.TLS != nil && !t.names(r.TLS.ServerName), slices.ContainsFunc(r.Header["Host"], func(host string) bool { return host != r.Host }):
		// HTTP/2 leaves a Host beside :authority among the headers (RFC 9113, 8.3.1).
		refused = misdirected("CONNECT, the TLS server name, Host and :authority do not name the same host.")
	case isOwn(target):
		p.serveOwn(w, r)
		return
	}
	p.serve(w, r, p.settings.Load(), target, refused)
}

// maxURL bounds a request's URL, in bytes: RFC 9110, 4.1 asks for 8,000 at least, and the time
// of a decision grows with the length.
const maxURL = 16 << 10

// checkRequest returns what to answer to a request that is malformed or of a kind that is not
// served, nil if it is in order. err is the error of parsing its target.
func checkRequest(r *http.Request, err error) *answer {
	switch {
	// goproxy would open a tunnel of its own for CONNECT.
	case strings.EqualFold(r.Method, http.MethodConnect), strings.EqualFold(r.Method, http.MethodTrace), isAsterisk(r):
		return &answer{status: http.StatusMethodNotAllowed, detail: r.Method + " of this kind is not served by the gate.", fault: "http_request_denied", refused: IsMalformed}
	case len(r.RequestURI) > maxURL:
		return &answer{status: http.StatusRequestURITooLong, fault: "http_request_error", refused: IsMalformed,
			detail: fmt.Sprintf("The URL is longer than %d bytes.", maxURL)}
	}
	if err == nil {
		err = malformed(r)
	}
	if err != nil {
		return badRequest(err)
	}
	return nil
}

// isAsterisk reports whether a request is about a server as a whole: the target is *, or the
// method is OPTIONS and the URL has no path (RFC 9112, 3.2.4).
func isAsterisk(r *http.Request) bool {
	return r.RequestURI == "*" || r.Method == http.MethodOptions && r.URL.Path == "" && r.URL.RawQuery == ""
}

// malformed returns the error of a request that net/http accepts but that must not be
// forwarded, mostly in HTTP/2.
func malformed(r *http.Request) error {
	switch lengths := r.Header["Content-Length"]; {
	case !httpguts.ValidHeaderFieldName(r.Method): // a token, as a method is (RFC 9110, 9.1)
		return errors.New("the method is not a valid token")
	case r.ProtoMajor < 2:
		return nil
	case !strings.HasPrefix(r.RequestURI, "/"):
		return errors.New(":path does not begin with a slash (RFC 9113, 8.3.1)")
	case slices.ContainsFunc(lengths, func(n string) bool { return n != strconv.FormatInt(r.ContentLength, 10) }):
		return errors.New("Content-Length is not that of the body (RFC 9113, 8.1.1)")
	}
	return nil
}

// withStreamLimits returns a handler that admits HTTP/2 requests as far as there is memory.
func (p *Proxy) withStreamLimits(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			serve(w, r)
			return
		}
		c := connOf(r).client
		end, err := c.AdmitStream(r, p.Limits.IdleTimeout)
		if err != nil {
			if errors.Is(err, memory.ErrLimit) { // not if the client has disconnected
				p.conns.ResetStream(c)
			}
			panic(http.ErrAbortHandler) // a response would have to wait for the client, too
		}
		defer end()
		serve(w, r)
		c.FlushStream(w)
	}
}
