package proxy

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"

	"robotsgate/policy"
)

// serveOuter receives what clients send to the gate's own address.
func (p *Proxy) serveOuter(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodConnect:
		p.connect(w, r)
	case strings.HasPrefix(r.RequestURI, "/"):
		p.serveOwn(w, r)
	default:
		// The URL names the destination; Host is not looked at (RFC 9112, 3.2.2).
		target, err := policy.ParseURL(r.RequestURI)
		refused := unreadable(r, err)
		if refused == nil && target.Hostname() == ownName {
			p.serveOwn(w, r)
			return
		}
		p.serve(w, r, p.settings.Load(), target, refused)
	}
}

// serveInner receives what clients send through their tunnels. CONNECT, SNI and
// Host must name one origin: else a client could have one judged and reach another.
func (p *Proxy) serveInner(w http.ResponseWriter, r *http.Request) {
	t := r.Context().Value(tunnelKey{}).(*tunnel)
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	var target policy.Target
	var err error
	absolute := !strings.HasPrefix(r.RequestURI, "/")
	if absolute {
		target, err = policy.ParseURL(r.RequestURI)
	} else {
		host := r.Host
		if !r.ProtoAtLeast(1, 1) {
			host = cmp.Or(host, t.authority) // HTTP/1.0 need not send Host
		}
		target, err = policy.ParseTarget(scheme, host, r.RequestURI)
	}
	elsewhere := target.Origin() != t.origin(scheme)
	refused := unreadable(r, err)
	switch {
	case refused != nil:
	case elsewhere && absolute:
		refused = unreadable(r, errors.New("the URL names another origin than the tunnel's CONNECT"))
	case elsewhere, r.TLS != nil && !t.names(r.TLS.ServerName), slices.ContainsFunc(r.Header["Host"], func(host string) bool { return host != r.Host }):
		// HTTP/2 leaves a Host beside :authority among the headers (RFC 9113, 8.3.1).
		refused = &problem{status: http.StatusMisdirectedRequest, fault: "http_request_denied",
			detail: "CONNECT, the TLS server name, Host and :authority do not name the same host."}
	case target.Hostname() == ownName:
		p.serveOwn(w, r)
		return
	}
	p.serve(w, r, p.settings.Load(), target, refused)
}

// maxURL bounds a request's URL, in bytes: RFC 9110, 4.1 asks for 8,000 at least,
// and rules without number take their time with each of them.
const maxURL = 16 << 10

// unreadable returns what to answer when a request's target can't be read or
// must not be asked for, nil if it is in order.
func unreadable(r *http.Request, err error) *problem {
	switch {
	// goproxy would open a tunnel of its own for CONNECT.
	case strings.EqualFold(r.Method, http.MethodConnect), strings.EqualFold(r.Method, http.MethodTrace), isAsterisk(r):
		return &problem{status: http.StatusMethodNotAllowed, detail: r.Method + " of this kind is not served by the gate.", fault: "http_request_denied"}
	case len(r.RequestURI) > maxURL:
		return &problem{status: http.StatusRequestURITooLong, fault: "http_request_error",
			detail: fmt.Sprintf("The URL is longer than %d bytes.", maxURL)}
	}
	if err == nil {
		err = malformed(r)
	}
	if err != nil {
		return notUnderstood(err)
	}
	return nil
}

// notUnderstood answers a request that could be read in two ways, or in none.
func notUnderstood(err error) *problem {
	return &problem{status: http.StatusBadRequest, detail: "The request was not understood: " + err.Error() + ".", fault: "http_request_error"}
}

// isAsterisk reports whether a request is about a server as a whole. A URL without
// a path asks for that too, with OPTIONS (RFC 9112, 3.2.4).
func isAsterisk(r *http.Request) bool {
	return r.RequestURI == "*" || r.Method == http.MethodOptions && r.URL.Path == "" && r.URL.RawQuery == ""
}

// malformed reports what net/http lets pass although it must not be passed on,
// mostly in HTTP/2.
func malformed(r *http.Request) error {
	switch lengths := r.Header["Content-Length"]; {
	case !httpguts.ValidHeaderFieldName(r.Method): // a token, as a method is (RFC 9110, 9.1)
		return errors.New("the method is no token")
	case r.ProtoMajor < 2:
		return nil
	case !strings.HasPrefix(r.RequestURI, "/"):
		return errors.New(":path does not begin with a slash (RFC 9113, 8.3.1)")
	case slices.ContainsFunc(lengths, func(n string) bool { return n != strconv.FormatInt(r.ContentLength, 10) }):
		return errors.New("Content-Length is not that of the body (RFC 9113, 8.1.1)")
	}
	return nil
}

// prepare leaves in a request only what is meant for the origin. It reports
// whether the request asks for a WebSocket.
func prepare(r *http.Request) (upgrade bool) {
	upgrade = isWebSocket(r)
	agent := r.Header["User-Agent"] // what was decided by is what is sent, whatever Connection names
	dropHopByHop(r.Header)
	dropOwn(r.Header)
	dropRerouting(r.Header)
	if agent != nil {
		r.Header["User-Agent"] = agent
	}
	if !r.ProtoAtLeast(1, 1) {
		delete(r.Header, "Expect") // RFC 9110, 10.1.1
	}
	r.Trailer = nil // they could carry what the header may not
	if upgrade {
		// The one upgrade that is passed on; goproxy carries the tunnel that follows.
		r.Header["Connection"], r.Header["Upgrade"] = []string{"Upgrade"}, []string{"websocket"}
	}
	if _, ok := r.Header["User-Agent"]; !ok {
		r.Header["User-Agent"] = []string{""} // else net/http adds its own
	}
	if r.ContentLength == 0 {
		// Else Transport takes HTTP/2's body without bytes for one of unknown
		// length, and does not repeat the request when a kept connection was gone.
		r.Body = http.NoBody
	}
	r.Close = false // the client's "Connection: close" concerns its own connection
	return upgrade
}

// hopByHop are meant for the next hop only (RFC 9110, 7.6.1).
var hopByHop = []string{"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authentication-Info", "Proxy-Authorization",
	"Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Http2-Settings"}

// dropHopByHop removes those, and what Connection names.
func dropHopByHop(h http.Header) {
	for _, line := range h["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			delete(h, textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(name)))
		}
	}
	for _, name := range hopByHop {
		delete(h, name)
	}
}

// isWebSocket recognises a handshake (RFC 6455, 4.1). It has no body: Transport would
// go on reading that when the connection has been switched.
func isWebSocket(r *http.Request) bool {
	return r.ContentLength == 0 && r.ProtoAtLeast(1, 1) && r.ProtoMajor == 1 && r.Method == http.MethodGet && hasToken(r.Header["Connection"], "upgrade") && hasToken(r.Header["Upgrade"], "websocket")
}

func hasToken(lines []string, token string) bool {
	for _, line := range lines {
		for t := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.TrimSpace(t), token) {
				return true
			}
		}
	}
	return false
}
