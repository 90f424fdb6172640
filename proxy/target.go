package proxy

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"robotsgate/internal/record"
	"robotsgate/policy/canonical"
	"robotsgate/proxy/internal/header"
)

// proxyTarget returns the target of a request to the gate's own address, or the answer to it.
func proxyTarget(r *http.Request) (canonical.Target, *answer) {
	// The URL names the destination, and Host is ignored (RFC 9112, 3.2.2).
	target, err := canonical.ParseURL(r.RequestURI)
	return target, checkRequest(r, err)
}

// tunnelTarget returns the target of a request inside a tunnel, or the answer to it. CONNECT, SNI and Host must name one
// origin: otherwise a client could be allowed at one origin and reach another.
func tunnelTarget(r *http.Request, t *tunnel) (canonical.Target, *answer) {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	if t.port != "" {
		return begunTarget(r, t, scheme)
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
	case elsewhere, r.TLS != nil && !t.names(r.TLS.ServerName), header.OtherHost(r):
		refused = misdirected("CONNECT, the TLS server name, Host and :authority do not name the same host.")
	}
	return target, refused
}

// begunTarget returns the target of a request of a connection without CONNECT, or the answer to it. The server name, if
// there is one, the name in a SOCKS request, Host and the port that the client has chosen must name one origin.
func begunTarget(r *http.Request, t *tunnel, scheme string) (canonical.Target, *answer) {
	if !strings.HasPrefix(r.RequestURI, "/") {
		how := "was redirected to the gate; give the client the gate's own address as its proxy, or none"
		if t.socks {
			how = "came by SOCKS; give the client one proxy, not two"
		}
		return canonical.Target{}, checkRequest(r, errors.New("the request is one for a proxy, and its connection "+how))
	}
	host := r.Host
	if t.authority != "" && !r.ProtoAtLeast(1, 1) {
		host = cmp.Or(host, t.authority) // HTTP/1.0 need not send Host, and TLS or SOCKS has named it
	}
	if host == "" {
		return canonical.Target{}, checkRequest(r, errors.New("it has no Host, so it does not say which origin it is for"))
	}
	name, port := canonical.SplitPort(host)
	target, err := canonical.ParseTarget(scheme, name+":"+cmp.Or(port, t.port), r.RequestURI)
	if refused := checkRequest(r, err); refused != nil {
		return target, refused
	}
	_, port, _ = net.SplitHostPort(target.Address())
	switch {
	case port != t.port:
		return target, misdirected("The client has connected to port " + t.port + ", and Host names another one.")
	case r.TLS != nil && (target.Origin() != t.secure || !t.names(r.TLS.ServerName)), header.OtherHost(r):
		return target, misdirected("The TLS server name, Host and :authority do not name the same host.")
	case t.named && target.Hostname() != t.host:
		return target, misdirected("The SOCKS request and Host do not name the same host.")
	}
	return target, nil
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
		return &answer{status: http.StatusMethodNotAllowed, detail: r.Method + " of this kind is not served by the gate.", fault: "http_request_denied", refused: record.IsMalformed}
	case len(r.RequestURI) > maxURL:
		return &answer{status: http.StatusRequestURITooLong, fault: "http_request_error", refused: record.IsMalformed,
			detail: fmt.Sprintf("The URL is longer than %d bytes.", maxURL)}
	}
	if err == nil {
		err = header.Malformed(r)
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
