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

	"robotsgate/policy/canonical"
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
		if refused == nil && target.Hostname() == ownName {
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
	elsewhere := target.Origin() != t.origin(scheme)
	refused := checkRequest(r, err)
	switch {
	case refused != nil:
	case elsewhere && absolute:
		refused = checkRequest(r, errors.New("the URL names another origin than the tunnel's CONNECT"))
	case elsewhere, r.TLS != nil && !t.names(r.TLS.ServerName), slices.ContainsFunc(r.Header["Host"], func(host string) bool { return host != r.Host }):
		// HTTP/2 leaves a Host beside :authority among the headers (RFC 9113, 8.3.1).
		refused = misdirected("CONNECT, the TLS server name, Host and :authority do not name the same host.")
	case target.Hostname() == ownName:
		p.serveOwn(w, r)
		return
	}
	p.serve(w, r, p.settings.Load(), target, refused)
}

// misdirected answers a request that is for another origin than its connection (RFC 9110, 15.5.20).
func misdirected(detail string) *problem {
	return &problem{status: http.StatusMisdirectedRequest, fault: "http_request_denied", refused: IsMalformed, detail: detail}
}

// maxURL bounds a request's URL, in bytes: RFC 9110, 4.1 asks for 8,000 at least, and the time
// of a decision grows with the length.
const maxURL = 16 << 10

// checkRequest returns what to answer to a request that is malformed or of a kind that is not
// served, nil if it is in order. err is the error of parsing its target.
func checkRequest(r *http.Request, err error) *problem {
	switch {
	// goproxy would open a tunnel of its own for CONNECT.
	case strings.EqualFold(r.Method, http.MethodConnect), strings.EqualFold(r.Method, http.MethodTrace), isAsterisk(r):
		return &problem{status: http.StatusMethodNotAllowed, detail: r.Method + " of this kind is not served by the gate.", fault: "http_request_denied", refused: IsMalformed}
	case len(r.RequestURI) > maxURL:
		return &problem{status: http.StatusRequestURITooLong, fault: "http_request_error", refused: IsMalformed,
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

// badRequest answers a request that is malformed or ambiguous.
func badRequest(err error) *problem {
	return &problem{status: http.StatusBadRequest, detail: "The request was not understood: " + err.Error() + ".", fault: "http_request_error", refused: IsMalformed}
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

// prepare removes from a request what is not for the origin. It reports whether the request is
// a WebSocket handshake.
func prepare(r *http.Request) (upgrade bool) {
	upgrade = isWebSocket(r)
	agent := r.Header["User-Agent"] // the decision depends on it, so it is sent even if Connection names it
	dropHopByHop(r.Header)
	dropOwn(r.Header)
	dropRerouting(r.Header)
	if agent != nil {
		r.Header["User-Agent"] = agent
	}
	if !r.ProtoAtLeast(1, 1) {
		delete(r.Header, "Expect") // RFC 9110, 10.1.1
	}
	r.Trailer = nil // it could carry fields that are removed from the header
	if upgrade {
		// The only upgrade that is forwarded; goproxy relays the tunnel that follows.
		r.Header["Connection"], r.Header["Upgrade"] = []string{"Upgrade"}, []string{"websocket"}
	}
	if _, ok := r.Header["User-Agent"]; !ok {
		r.Header["User-Agent"] = []string{""} // otherwise net/http adds its own
	}
	if r.ContentLength == 0 {
		// Transport would take the empty body of an HTTP/2 request for one of unknown length,
		// and not repeat the request when an idle connection was closed.
		r.Body = http.NoBody
	}
	r.Close = false // the client's "Connection: close" concerns its own connection
	return upgrade
}

// hopByHop are the fields for the next hop only (RFC 9110, 7.6.1).
var hopByHop = []string{"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authentication-Info", "Proxy-Authorization",
	"Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Http2-Settings"}

// dropHopByHop removes the hop-by-hop fields, and the fields that Connection names.
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

// isWebSocket reports whether a request is a handshake (RFC 6455, 4.1). It must have no body:
// Transport would go on reading the body when the protocol has been switched.
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
