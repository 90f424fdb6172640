// Package header says which fields of requests and responses are passed on: not those of one hop, not those that only the
// gate may set, and not those by which a request would name another resource than the one that was decided about. It
// also says which messages are not passed on at all, which form of a refusal the Accept field asks for, and writes
// structured fields.
package header

import (
	"net/http"
	"net/textproto"
	"slices"
	"strings"

	"github.com/dunglas/httpsfv"
	"golang.org/x/net/http/httpguts"
)

// What the gate itself adds to responses.
const (
	OwnPrefix = "Robots-Gate-" // of the names of its fields
	Status    = "Proxy-Status" // RFC 9209
	GateName  = "robotsgate"   // of its member of Status
)

// Request removes from a request what is not for the origin. It reports whether the request is
// a WebSocket handshake.
func Request(r *http.Request) (upgrade bool) {
	upgrade = isWebSocket(r)
	agent := r.Header["User-Agent"] // the decision depends on it, so it is sent even if Connection names it
	trailers := httpguts.HeaderValuesContainsToken(r.Header["Te"], "trailers")
	dropHopByHop(r.Header)
	dropOwn(r.Header)
	dropRerouting(r.Header)
	if trailers { // the gate passes them on, and gRPC servers refuse requests without it (RFC 9113, 8.2.2)
		r.Header["Te"] = []string{"trailers"}
	}
	if agent != nil {
		r.Header["User-Agent"] = agent
	}
	if !r.ProtoAtLeast(1, 1) {
		delete(r.Header, "Expect") // RFC 9110, 10.1.1
	}
	r.Trailer = nil // it could carry fields that are removed from the header
	if upgrade {
		// The only upgrade that is forwarded.
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

// Name makes a User-Agent that of a request, and removes the fields that would contradict it: client hints
// (https://wicg.github.io/ua-client-hints/), and other spellings that a server may take for it.
func Name(h http.Header, userAgent string) {
	var buf [MaxPlain]byte
	for name := range h {
		switch plain := string(Plain(buf[:0], name)); {
		case plain == "user-agent", plain == "sec-ch-ua", strings.HasPrefix(plain, "sec-ch-ua-"):
			delete(h, name)
		}
	}
	h["User-Agent"] = []string{userAgent}
}

// Response removes from a response's header what is not for the client.
func Response(h http.Header) {
	Trim(h)
	dropHopByHop(h)
	dropOwn(h)
	delete(h, "Alt-Svc") // with it clients would bypass the gate
}

// Trailer removes trailer fields that frame or route a message (RFC 9110, 6.5.1), and the
// fields that only the gate may send.
func Trailer(h http.Header) {
	Trim(h)
	dropHopByHop(h)
	dropOwn(h)
	for _, name := range []string{"Content-Length", "Content-Encoding", "Content-Type", "Content-Range", "Host", "Alt-Svc"} {
		delete(h, name)
	}
}

// Trim removes white space at the ends of values, which net/http leaves there in HTTP/2 (RFC 9113, 8.2.1).
func Trim(h http.Header) {
	for _, values := range h {
		for i, v := range values {
			values[i] = textproto.TrimString(v)
		}
	}
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

// dropOwn removes what only the gate may say: its own headers, and its members
// of Proxy-Status.
func dropOwn(h http.Header) {
	for name := range h {
		// Some read an underscore as a hyphen (RFC 3875, 4.1.18).
		if len(name) >= len(OwnPrefix) && strings.EqualFold(strings.ReplaceAll(name[:len(OwnPrefix)], "_", "-"), OwnPrefix) {
			delete(h, name)
		}
	}
	if lines := h[Status]; len(lines) > 0 {
		if kept := othersStatus(lines); kept != "" {
			h[Status] = []string{kept}
		} else {
			delete(h, Status)
		}
	}
}

// othersStatus returns the members of a Proxy-Status that are not the gate's. A
// field that is not valid has no meaning (RFC 9651, 4.2) and is dropped.
func othersStatus(lines []string) string {
	list, err := httpsfv.UnmarshalList(lines)
	if err != nil {
		return ""
	}
	s, _ := httpsfv.Marshal(slices.DeleteFunc(list, func(m httpsfv.Member) bool {
		i, ok := m.(httpsfv.Item)
		return ok && (i.Value == httpsfv.Token(GateName) || i.Value == GateName)
	}))
	return s
}

// isWebSocket reports whether a request is a handshake (RFC 6455, 4.1). It must have no body:
// Transport would go on reading the body when the protocol has been switched.
func isWebSocket(r *http.Request) bool {
	return r.ContentLength == 0 && r.ProtoAtLeast(1, 1) && r.ProtoMajor == 1 && r.Method == http.MethodGet &&
		httpguts.HeaderValuesContainsToken(r.Header["Connection"], "upgrade") && httpguts.HeaderValuesContainsToken(r.Header["Upgrade"], "websocket")
}

// TrimNames removes the white space before the colon that net/http leaves in the names of a
// response's fields (RFC 9112, 5.1). It reports false if such a field frames the response.
func TrimNames(h http.Header) bool {
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
