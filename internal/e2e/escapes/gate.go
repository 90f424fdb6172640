//go:build linux && (amd64 || arm64)

package escapes

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"robotsgate/internal/confine/attempts"
)

// throughGate has requests on the ports that the gate catches, which the gate must not send on, and
// connections that only look as if they were for another host.
var throughGate = []Attempt{
	{Name: "gate-private-host", Tries: "ask the gate for a host on this machine", try: text("GET /TOKEN HTTP/1.1\r\nHost: PRIVATE\r\n\r\n")},
	{Name: "gate-other-host", Tries: "connect to one host with the Host of an allowed one", try: text("GET /TOKEN HTTP/1.1\r\nHost: ALLOWED\r\n\r\n")},
	{Name: "gate-no-host", Tries: "send a request without Host", try: text("GET /TOKEN HTTP/1.0\r\n\r\n")},
	{Name: "gate-two-hosts", Tries: "send two Host fields", try: text("GET /TOKEN HTTP/1.1\r\nHost: ALLOWED\r\nHost: PRIVATE\r\n\r\n")},
	{Name: "gate-absolute-form", Tries: "name another host in the URL than in Host", try: text("GET http://PRIVATE/TOKEN HTTP/1.1\r\nHost: ALLOWED\r\n\r\n")},
	{Name: "gate-http09", Tries: "speak HTTP/0.9", try: text("GET /TOKEN\r\n")},
	{Name: "gate-no-http", Tries: "send data that are neither TLS nor HTTP", try: text("SSH-2.0-TOKEN\r\n")},
	{Name: "gate-connect", Tries: "open a tunnel to this machine with CONNECT", try: text("CONNECT PRIVATE HTTP/1.1\r\nHost: PRIVATE\r\nX-Token: TOKEN\r\n\r\nTOKEN")},
	{Name: "gate-second-request", Tries: "name another host in the second request of a connection", try: text("GET /robots.txt HTTP/1.1\r\nHost: ALLOWED\r\n\r\nGET /TOKEN HTTP/1.1\r\nHost: PRIVATE\r\n\r\n")},
	{Name: "gate-upgrade", Tries: "upgrade a connection to one that is not read", try: text("GET /TOKEN HTTP/1.1\r\nHost: PRIVATE\r\nConnection: Upgrade\r\nUpgrade: TOKEN\r\n\r\nTOKEN")},
	{Name: "gate-http2", Tries: "speak HTTP/2 without TLS", try: http2Text},
	{Name: "gate-own-listener", Tries: "ask the gate's own listener for a host on this machine", try: ownListener("GET http://PRIVATE/TOKEN HTTP/1.1\r\nHost: PRIVATE\r\n\r\n")},
	{Name: "gate-own-connect", Tries: "open a tunnel to this machine through the gate's own listener", try: ownListener("CONNECT PRIVATE HTTP/1.1\r\nHost: PRIVATE\r\nX-Token: TOKEN\r\n\r\nTOKEN")},
	{Name: "denied-path", Tries: "fetch a path that robots.txt disallows", try: denied("GET /denied/TOKEN HTTP/1.1\r\nHost: DENIED\r\n\r\n")},
	{Name: "denied-encoded", Tries: "encode a letter of a path that robots.txt disallows", try: denied("GET /%64enied/TOKEN HTTP/1.1\r\nHost: DENIED\r\n\r\n")},
	{Name: "denied-dots", Tries: "reach a disallowed path with dot segments", try: denied("GET /a/../denied/TOKEN HTTP/1.1\r\nHost: DENIED\r\n\r\n")},
	{Name: "denied-websocket", Tries: "open a WebSocket on a disallowed path", try: denied("GET /denied/TOKEN HTTP/1.1\r\nHost: DENIED\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")},
	{Name: "denied-second-request", Tries: "send a disallowed request behind an allowed one", try: denied("GET /robots.txt HTTP/1.1\r\nHost: DENIED\r\n\r\nGET /denied/TOKEN HTTP/1.1\r\nHost: DENIED\r\n\r\n")},
	{Name: "denied-smuggled", Tries: "hide a disallowed request in a body with two lengths", try: denied("POST /robots.txt HTTP/1.1\r\nHost: DENIED\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /denied/TOKEN HTTP/1.1\r\nHost: DENIED\r\n\r\n")},
	{Name: "tls-other-name", Tries: "connect to this machine with the server name of an allowed host", try: func(t *trial) error { return t.tls(t.caughtTLS(), "allowed.example", "allowed.example") }},
	{Name: "tls-other-host", Tries: "ask for another host than the ClientHello names", try: func(t *trial) error { return t.tls(t.caughtTLS(), "allowed.example", t.caughtTLS()) }},
	{Name: "tls-no-name", Tries: "speak TLS without a server name", try: func(t *trial) error { return t.tls(t.caughtTLS(), "", t.caughtTLS()) }},
}

func (t *trial) caughtTLS() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(t.TLSPort)) }

func (t *trial) caughtHTTP() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(t.HTTPPort)) }

// fill puts addresses and the token into a text.
func (t *trial) fill(s string) string {
	return strings.NewReplacer("TOKEN", t.Token(), "PRIVATE", t.caughtHTTP(), "ALLOWED", t.Allowed, "DENIED", t.Denied).Replace(s)
}

// text sends a text to a target on this machine, on a port that the gate catches.
func text(s string) func(*trial) error {
	return func(t *trial) error { return t.Send("tcp", t.caughtHTTP(), t.fill(s)) }
}

// denied sends a text to the origin with the robots.txt that disallows it.
func denied(s string) func(*trial) error {
	return func(t *trial) error {
		conn, err := net.Dial("tcp", t.Denied)
		if err != nil {
			return err
		}
		defer conn.Close()
		err = attempts.Exchange(conn, t.fill(s))
		// The answer to a second request.
		return fmt.Errorf("%w; then %w", err, attempts.Exchange(conn, "\r\n"))
	}
}

// ownListener sends a text to the proxy that the variables name. Unconfined, with none, this is
// the target itself.
func ownListener(s string) func(*trial) error {
	return func(t *trial) error {
		proxy := strings.TrimSuffix(strings.TrimPrefix(os.Getenv("http_proxy"), "http://"), "/")
		if proxy == "" {
			proxy = t.caughtHTTP()
		}
		return t.Send("tcp", proxy, t.fill(s))
	}
}

// http2Text sends a request as HTTP/2 frames, without compression, so that the token can be read in
// them (RFC 9113, section 3.3; RFC 7541, section 6.2.2).
func http2Text(t *trial) error {
	field := func(name, value string) string {
		return "\x00" + string(rune(len(name))) + name + string(rune(len(value))) + value
	}
	block := field(":method", "GET") + field(":scheme", "http") + field(":authority", t.caughtHTTP()) + field(":path", "/"+t.Token())
	frame := func(kind, flags byte, stream byte, payload string) string {
		return string([]byte{0, byte(len(payload) >> 8), byte(len(payload)), kind, flags, 0, 0, 0, stream}) + payload
	}
	return t.Send("tcp", t.caughtHTTP(), "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"+frame(4, 0, 0, "")+frame(1, 5, 1, block))
}
