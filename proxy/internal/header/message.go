package header

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// Malformed returns the error of a request that net/http accepts but that must not be
// forwarded, mostly in HTTP/2.
func Malformed(r *http.Request) error {
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

// OtherHost reports whether a Host names another host than :authority. HTTP/2 leaves it among the header fields (RFC 9113,
// 8.3.1).
func OtherHost(r *http.Request) bool {
	return slices.ContainsFunc(r.Header["Host"], func(host string) bool { return host != r.Host })
}

// AmbiguousFraming reports whether two readers may frame a request differently: net/http does
// not tell whether there was a Content-Length beside the chunks, or chunks in HTTP/1.0. The
// connection ends with the answer (RFC 9112, 6.1), so that no rest of the body is read as a
// request.
func AmbiguousFraming(r *http.Request) bool {
	switch {
	case r.ProtoMajor > 1:
		return false
	case r.ProtoAtLeast(1, 1):
		return len(r.TransferEncoding) > 0
	default:
		return r.ContentLength != 0 || r.Method != http.MethodGet && r.Method != http.MethodHead
	}
}

// InvalidResponse reports a response that must not be forwarded: with a status out of range,
// with a Content-Length that net/http did not understand, or with a switch of protocols that
// the client did not ask for, after which its requests would reach the origin undecided.
func InvalidResponse(resp *http.Response, upgrade bool) bool {
	switch code := resp.StatusCode; {
	case !TrimNames(resp.Header):
		return true
	case code == http.StatusSwitchingProtocols:
		return !upgrade || !httpguts.HeaderValuesContainsToken(resp.Header["Upgrade"], "websocket") ||
			!httpguts.HeaderValuesContainsToken(resp.Header["Connection"], "upgrade")
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
