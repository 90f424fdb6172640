package client

import (
	"bufio"
	"bytes"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"time"

	"golang.org/x/net/http/httpguts"
)

// The reasons why a redirected connection is refused.
const (
	NotRedirected ConnRefusal = "not-redirected" // the client has connected to the gate's listener itself
	IsOwn         ConnRefusal = "own"            // it is the gate's own, to an origin
	NoName        ConnRefusal = "no-name"        // TLS without a server name
	BadName       ConnRefusal = "bad-name"       // the server name is an address, or not a host name
	BadHello      ConnRefusal = "bad-hello"      // the ClientHello is malformed or too long
	ClearHTTP2    ConnRefusal = "clear-http2"    // HTTP/2 in clear, with prior knowledge
	NotHTTP       ConnRefusal = "not-http"       // neither TLS nor HTTP
	Incomplete    ConnRefusal = "incomplete"     // no complete ClientHello or request line in time
)

// NewRedirected returns a counter of redirected connections.
func NewRedirected() *ConnCounter { return newConnCounter("redirected connections", redirectAdvice) }

var redirectAdvice = map[ConnRefusal]string{
	NotRedirected: "their clients have connected to this listener themselves; give them the proxy's address, or redirect them",
	IsOwn:         "they are the gate's own connections to origins; except the gate's user from the rules that redirect",
	NoName:        "their TLS has no server name, so the gate does not know where to go; use the gate as a proxy for such clients",
	BadName:       "their TLS server name is not a host name; use the gate as a proxy for such clients",
	BadHello:      "they begin like TLS, but their ClientHello is malformed or too long",
	ClearHTTP2:    "they speak HTTP/2 in clear, which the gate does not read; use HTTP/1.1 or TLS",
	NotHTTP:       "they speak neither TLS nor HTTP; redirect the ports of HTTP and HTTPS only",
	Incomplete:    "no complete ClientHello or request line has arrived in time",
}

// MaxFirstLine is how much is read to recognise a request line, in bytes. A longer line is left to net/http.
const MaxFirstLine = 4 << 10

// ReadFirstLine reads a line and returns why the connection is refused; "" if the line may begin a request of HTTP/1.
// net/http reads it again: only that decides what the request is.
func ReadFirstLine(rd *bufio.Reader) (refused ConnRefusal) {
	for more := error(nil); ; _, more = rd.Peek(rd.Buffered() + 1) {
		have, _ := rd.Peek(rd.Buffered())
		method, rest, spaced := bytes.Cut(have, []byte(" "))
		if !isToken(method) {
			return NotHTTP
		}
		line, _, ended := bytes.Cut(rest, []byte("\n"))
		switch line = bytes.TrimSuffix(line, []byte("\r")); {
		case ended && bytes.HasSuffix(line, []byte(" HTTP/2.0")):
			return ClearHTTP2 // its preface (RFC 9113, 3.4)
		case ended && !bytes.HasSuffix(line, []byte(" HTTP/1.1")) && !bytes.HasSuffix(line, []byte(" HTTP/1.0")):
			return NotHTTP
		case ended, errors.Is(more, bufio.ErrBufferFull) && spaced:
			return ""
		case errors.Is(more, bufio.ErrBufferFull):
			return NotHTTP
		case more != nil:
			return Incomplete
		}
	}
}

// isToken reports whether a method consists of the characters of a token (RFC 9110, 5.6.2), as far as it has been read.
func isToken(method []byte) bool {
	return len(method) > 0 && bytes.IndexFunc(method, func(c rune) bool { return !httpguts.IsTokenRune(c) }) < 0
}

// Alerts that say why a connection is closed (RFC 8446, section 6.2).
const (
	AlertAccessDenied     = 49
	AlertMissingExtension = 109
	AlertUnrecognizedName = 112
)

// SendAlert sends a fatal alert in answer to a ClientHello.
func SendAlert(c net.Conn, alert byte) {
	_ = c.SetWriteDeadline(time.Now().Add(time.Second))
	_, _ = c.Write([]byte{recordTypeAlert, 3, 3, 0, 2, 2, alert}) // the client may have gone
}

// alerts say why a connection is refused.
var alerts = map[ConnRefusal]byte{NoName: AlertMissingExtension, BadName: AlertUnrecognizedName}

// OriginalPort returns the port that the client has connected to. ok is false if the connection was not redirected.
func OriginalPort(c *Conn) (port string, ok bool) {
	if r, can := c.Conn.(interface{ Redirected() bool }); can && !r.Redirected() {
		return "", false
	}
	a, err := netip.ParseAddrPort(c.LocalAddr().String())
	return strconv.Itoa(int(a.Port())), err == nil && a.Port() != 0
}
