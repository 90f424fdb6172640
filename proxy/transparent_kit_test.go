package proxy_test

import (
	"bufio"
	"cmp"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"robotsgate/internal/record"
	"robotsgate/policy"
	"robotsgate/policy/glob"
	"robotsgate/policy/pace"
	"robotsgate/proxy"
	"robotsgate/proxy/internal/client"
	"robotsgate/proxy/internal/proxytest"
)

// A redirectedCase is what a client sends over one connection that was redirected, and what comes of it. The host is
// loop.example.com, which has the origins, if nothing else is said.
type redirectedCase struct {
	name   string
	gate   string // how the gate is set up, of redirectedGates; empty: as usual
	sni    string // "-": in clear
	alpn   string
	hello  string // of helloForms: how the ClientHello is sent
	port   string // that the client has connected to; empty: the origin's
	send   []string
	want   string             // the statuses of the answers; closed: the connection ends without an answer
	alert  string             // the handshake ends with it
	reason client.ConnRefusal // the connection is refused
	kind   record.Refusal     // of the last record
	// arrived are the requests at the origin; in a passthrough tunnel also what the gate would have refused.
	arrived string
	body    string // is in the last answer
}

const loopHost = "\r\nHost: loop.example.com\r\nUser-Agent: ExampleBot/1.0\r\n"

// get is a request for a path with the usual head.
func get(path string) string { return "GET " + path + " HTTP/1.1" + loopHost + "\r\n" }

// to is a request with another Host.
func to(host, path string) string {
	return "GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\nUser-Agent: ExampleBot/1.0\r\n\r\n"
}

var redirectedCases = []redirectedCase{
	// Requests in clear.
	{name: "clear: allowed", sni: "-", send: []string{get("/a")}, want: "200", arrived: "GET /a"},
	{name: "clear: denied", sni: "-", send: []string{get("/private/a")}, want: "403", kind: "rule"},
	{name: "clear: in one line feed", sni: "-", send: []string{strings.ReplaceAll(get("/a"), "\r\n", "\n")}, want: "200", arrived: "GET /a"},
	{name: "clear: several requests", sni: "-", send: []string{get("/a"), get("/private/b"), get("/c")}, want: "200 403 200", arrived: "GET /a, GET /c"},
	{name: "clear: several hosts", sni: "-", send: []string{get("/a"), to("second.example.com", "/b"), to("metadata.example.com", "/c"), get("/d")},
		want: "200 200 403 200", arrived: "GET /a, GET /b, GET /d"},
	{name: "clear: pipelined", sni: "-", send: []string{get("/a") + to("second.example.com", "/b") + get("/private/") + get("/d")}, want: "200 200 403 200", arrived: "GET /a, GET /b, GET /d"},
	{name: "clear: byte by byte", sni: "-", hello: "bytes", send: []string{get("/a")}, want: "200", arrived: "GET /a"},
	{name: "clear: with the port", sni: "-", send: []string{to("loop.example.com:PORT", "/a")}, want: "200", arrived: "GET /a"},
	{name: "clear: empty port", sni: "-", send: []string{to("loop.example.com:", "/a")}, want: "200", arrived: "GET /a"},
	{name: "clear: another port", sni: "-", send: []string{to("loop.example.com:81", "/a"), get("/b")}, want: "421 200", kind: "", arrived: "GET /b"},
	{name: "clear: port 0", sni: "-", send: []string{to("loop.example.com:0", "/a")}, want: "400", kind: record.IsMalformed},
	{name: "clear: port that is no number", sni: "-", send: []string{to("loop.example.com:http", "/a")}, want: "400"},
	{name: "clear: upper case", sni: "-", send: []string{to("LOOP.Example.COM", "/a")}, want: "200", arrived: "GET /a"},
	{name: "clear: trailing dot", sni: "-", send: []string{to("loop.example.com.", "/a")}, want: "200", arrived: "GET /a"},
	{name: "clear: underscore", sni: "-", send: []string{to("a_b.example.com", "/a")}, want: "200", arrived: "GET /a"},
	{name: "clear: IDNA", sni: "-", send: []string{to("xn--bcher-kva.example.com", "/a")}, want: "200", arrived: "GET /a"},
	{name: "clear: userinfo", sni: "-", send: []string{to("me@loop.example.com", "/a")}, want: "400"},
	{name: "clear: userinfo with a password", sni: "-", send: []string{to("loop.example.com:80@second.example.com", "/a")}, want: "400"},
	{name: "clear: address as Host", sni: "-", send: []string{to("127.0.0.1", "/a")}, want: "200", arrived: "GET /a"},
	{name: "clear: forbidden address as Host", sni: "-", send: []string{to("169.254.169.254", "/a")}, want: "403", kind: record.ByGuard},
	{name: "clear: a name that does not resolve", sni: "-", send: []string{to("unknown.example.com", "/a")}, want: "502"},
	{name: "clear: IPv6 address as Host", sni: "-", send: []string{to("[2001:db8::1]", "/a")}, want: "403", kind: record.ByGuard},
	{name: "clear: another spelling of an address", sni: "-", send: []string{to("0x7f.1", "/a")}, want: "400", kind: record.IsMalformed},
	{name: "clear: empty Host", sni: "-", send: []string{to("", "/a")}, want: "400", kind: record.IsMalformed, body: "no Host"},
	{name: "clear: no Host", sni: "-", send: []string{"GET /a HTTP/1.1\r\nUser-Agent: ExampleBot/1.0\r\n\r\n"}, want: "400"},
	{name: "clear: two Hosts", sni: "-", send: []string{"GET /a HTTP/1.1\r\nHost: loop.example.com\r\nHost: second.example.com\r\n\r\n"}, want: "400"},
	{name: "clear: NUL in Host", sni: "-", send: []string{to("loop\x00.example.com", "/a")}, want: "400"},
	{name: "clear: HTTP/1.0 with Host", sni: "-", send: []string{"GET /a HTTP/1.0" + loopHost + "\r\n"}, want: "200", arrived: "GET /a"},
	{name: "clear: HTTP/1.0 without Host", sni: "-", send: []string{"GET /a HTTP/1.0\r\n\r\n"}, want: "400", kind: record.IsMalformed, body: "no Host"},
	{name: "clear: a whole URL", sni: "-", send: []string{"GET http://loop.example.com/a HTTP/1.1" + loopHost + "\r\n"}, want: "400", kind: record.IsMalformed, body: "for a proxy"},
	{name: "clear: a whole URL with https", sni: "-", send: []string{"GET https://loop.example.com/a HTTP/1.1" + loopHost + "\r\n"}, want: "400", kind: record.IsMalformed},
	{name: "clear: CONNECT", sni: "-", send: []string{"CONNECT loop.example.com:443 HTTP/1.1" + loopHost + "\r\n"}, want: "405", kind: record.IsMalformed},
	{name: "clear: OPTIONS *", sni: "-", send: []string{"OPTIONS * HTTP/1.1" + loopHost + "\r\n"}, want: "405", kind: record.IsMalformed},
	{name: "clear: TRACE", sni: "-", send: []string{"TRACE /a HTTP/1.1" + loopHost + "\r\n"}, want: "405", kind: record.IsMalformed},
	{name: "clear: a proxy login is not the gate's", gate: "logins", sni: "-",
		send: []string{strings.Replace(get("/a"), "User-Agent", "Proxy-Authorization: Basic dGVhbTp4\r\nUser-Agent", 1)}, want: "403", kind: record.ByLogin,
		body: "its address"},
	{name: "clear: an upload", sni: "-", send: []string{"POST /up HTTP/1.1" + loopHost + "Content-Length: 5\r\n\r\nhello"}, want: "200", arrived: "POST /up"},
	{name: "clear: an upload in chunks", sni: "-", send: []string{"POST /up HTTP/1.1" + loopHost + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"}, want: "200", arrived: "POST /up"},
	{name: "clear: length and chunks", sni: "-", send: []string{"POST /up HTTP/1.1" + loopHost +
		"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n"}, want: "200", arrived: "POST /up"},
	{name: "clear: a long line", sni: "-", send: []string{get("/" + strings.Repeat("a", 9000))}, want: "200", arrived: "GET /" + strings.Repeat("a", 9000)},
	{name: "clear: a line that is too long", sni: "-", send: []string{get("/" + strings.Repeat("a", 20000))}, want: "414", kind: record.IsMalformed},
	{name: "clear: a head that is too long", sni: "-", send: []string{"GET /a HTTP/1.1\r\nX: " + strings.Repeat("a", 70<<10) + loopHost + "\r\n"}, want: "431"},
	{name: "clear: Connection: close", sni: "-", send: []string{strings.Replace(get("/a"), "User-Agent", "Connection: close\r\nUser-Agent", 1)}, want: "200 closed", arrived: "GET /a"},
	{name: "clear: robots.txt", sni: "-", send: []string{get("/robots.txt")}, want: "200", body: "Disallow: /private/"},
	{name: "clear: the gate's own page", sni: "-", send: []string{to("robotsgate.invalid", "/ca.pem")}, want: "200", body: "BEGIN CERTIFICATE"},
	{name: "clear: port 443", sni: "-", port: "443", send: []string{to("second.example.com:80", "/a")}, want: "421", kind: record.IsMalformed},
	{name: "clear: the gate itself", sni: "-", port: "GATE", send: []string{to("127.0.0.1", "/a")}, want: "403", kind: record.ByGuard, body: "own"},
	{name: "clear: a forbidden port", gate: "ports", sni: "-", send: []string{get("/a")}, want: "403", kind: record.ByGuard},
	{name: "clear: a forbidden host", gate: "deny host", sni: "-", send: []string{get("/a"), to("second.example.com", "/b")}, want: "403 200", arrived: "GET /b"},
	{name: "clear: denied by an override", gate: "deny override", sni: "-", send: []string{get("/a")}, want: "403", kind: "override", body: "by hand"},
	{name: "clear: allowed by an override", gate: "allow override", sni: "-", send: []string{get("/private/a")}, want: "200", arrived: "GET /private/a"},
	{name: "clear: report mode", gate: "report", sni: "-", send: []string{get("/private/a")}, want: "200", kind: "", arrived: "GET /private/a"},
	{name: "clear: an unknown client", gate: "unknown", sni: "-", send: []string{get("/a")}, want: "403", kind: record.ByLogin},
	{name: "clear: a client known by its address", gate: "known", sni: "-", send: []string{get("/a")}, want: "200", arrived: "GET /a"},
	{name: "clear: too early", gate: "pace", sni: "-", send: []string{get("/a"), get("/b")}, want: "200 429", kind: record.ByPace, arrived: "GET /a"},

	// What is neither TLS nor HTTP/1.
	{name: "SSH", sni: "-", send: []string{"SSH-2.0-OpenSSH_9.9\r\n"}, want: "closed", reason: client.NotHTTP},
	{name: "SSH with a comment", sni: "-", send: []string{"SSH-2.0-OpenSSH_9.9 Debian-1\r\n"}, want: "closed", reason: client.NotHTTP},
	{name: "SMTP", sni: "-", send: []string{"EHLO mail.example\r\n"}, want: "closed", reason: client.NotHTTP},
	{name: "a Postgres start", sni: "-", send: []string{"\x00\x00\x00\x08\x04\xd2\x16\x2f"}, want: "closed", reason: client.NotHTTP},
	{name: "SOCKS", sni: "-", send: []string{"\x05\x01\x00"}, want: "closed", reason: client.NotHTTP},
	{name: "SSLv2", sni: "-", send: []string{"\x80\x2e\x01\x00\x02"}, want: "closed", reason: client.NotHTTP},
	{name: "a TLS alert", sni: "-", send: []string{"\x15\x03\x01\x00\x02\x02\x28"}, want: "closed", reason: client.NotHTTP},
	{name: "HTTP/0.9", sni: "-", send: []string{"GET /\r\n"}, want: "closed", reason: client.NotHTTP},
	{name: "HTTP/1.2", sni: "-", send: []string{"GET / HTTP/1.2\r\n\r\n"}, want: "closed", reason: client.NotHTTP},
	{name: "HTTP/3.0", sni: "-", send: []string{"GET / HTTP/3.0\r\n\r\n"}, want: "closed", reason: client.NotHTTP},
	{name: "an empty line first", sni: "-", send: []string{"\r\n" + get("/a")}, want: "closed", reason: client.NotHTTP},
	{name: "a space first", sni: "-", send: []string{" " + get("/a")}, want: "closed", reason: client.NotHTTP},
	{name: "a long word", sni: "-", send: []string{strings.Repeat("A", 5000)}, want: "closed", reason: client.NotHTTP},
	{name: "HTTP/2 in clear", sni: "-", send: []string{http2Preface}, want: "closed", reason: client.ClearHTTP2},
	{name: "HTTP/2 in clear, byte by byte", sni: "-", hello: "bytes", send: []string{http2Preface}, want: "closed", reason: client.ClearHTTP2},
	{name: "half a line, then nothing", gate: "impatient", sni: "-", send: []string{"GET /a HT"}, want: "closed", reason: client.Incomplete},
	{name: "half a line, then the end", sni: "-", hello: "end", send: []string{"GET /a HT"}, want: "closed", reason: client.Incomplete},
	{name: "a slow line", gate: "impatient", sni: "-", hello: "slow", send: []string{get("/" + strings.Repeat("a", 400))}, want: "closed", reason: client.Incomplete},
	{name: "nothing", gate: "impatient", sni: "-", send: []string{""}, want: "closed", reason: client.Incomplete},
	{name: "half a ClientHello, then nothing", gate: "impatient", sni: "-", send: []string{"HALF"}, want: "closed", reason: client.Incomplete},
	{name: "half a ClientHello, then the end", sni: "-", hello: "end", send: []string{"HALF"}, want: "closed", reason: client.Incomplete},
	{name: "a slow ClientHello", gate: "impatient", sni: "-", hello: "slow", send: []string{"HELLO"}, want: "closed", reason: client.Incomplete},
	{name: "a ClientHello in too many records", sni: "-", send: []string{"HUGE"}, want: "closed", reason: client.BadHello},
	{name: "a ClientHello that says it is longer", sni: "-", send: []string{"\x16\x03\x01\x40\x00\x01\x01\x86\xa0" + strings.Repeat("x", 16380)}, want: "closed", reason: client.BadHello},
	{name: "a ClientHello, then the end", sni: "-", hello: "end", send: []string{"HELLO"}, want: "closed"},
	{name: "a ClientHello, then nothing", gate: "one second", sni: "-", send: []string{"HELLO"}, want: "closed"},
	{name: "a ClientHello, then no TLS", sni: "-", send: []string{"HELLO" + http2Preface + strings.Repeat("x", 100)}, want: "closed"},
	{name: "a probe of the port", sni: "-", hello: "end", send: []string{""}, want: "closed"},

	// TLS.
	{name: "TLS: allowed", send: []string{get("/a")}, want: "200", arrived: "GET /a"},
	{name: "TLS: denied", send: []string{get("/private/a")}, want: "403", kind: "rule"},
	{name: "TLS: several requests", send: []string{get("/a"), get("/private/b"), get("/c")}, want: "200 403 200", arrived: "GET /a, GET /c"},
	{name: "TLS: byte by byte", hello: "bytes", send: []string{get("/a")}, want: "200", arrived: "GET /a"},
	{name: "TLS: records of one byte", hello: "records of 1", send: []string{get("/a")}, want: "200", arrived: "GET /a"},
	{name: "TLS: records of seven bytes", hello: "records of 7", send: []string{get("/a")}, want: "200", arrived: "GET /a"},
	{name: "TLS: records of 200 bytes", hello: "records of 200", send: []string{get("/a")}, want: "200", arrived: "GET /a"},
	{name: "TLS: records of one byte, byte by byte", hello: "records of 1, bytes", send: []string{get("/a")}, want: "200", arrived: "GET /a"},
	{name: "TLS: 10,000 bytes of extensions", hello: "10000 more", send: []string{get("/a")}, want: "200", arrived: "GET /a"},
	{name: "TLS: 40,000 bytes of extensions", hello: "40000 more", send: []string{get("/a")}, want: "200", arrived: "GET /a"},
	{name: "TLS: with the port", send: []string{to("loop.example.com:PORT", "/a")}, want: "200", arrived: "GET /a"},
	{name: "TLS: another port", send: []string{to("loop.example.com:444", "/a")}, want: "421", kind: record.IsMalformed},
	{name: "TLS: another host", send: []string{to("second.example.com", "/a"), get("/b")}, want: "421 200", arrived: "GET /b"},
	{name: "TLS: another host and the port", send: []string{to("second.example.com:PORT", "/a")}, want: "421", kind: record.IsMalformed},
	{name: "TLS: upper case", sni: "LOOP.Example.COM", send: []string{get("/a")}, want: "200", arrived: "GET /a"},
	{name: "TLS: upper case in both", sni: "LOOP.Example.COM", send: []string{to("LOOP.Example.COM", "/a")}, want: "200", arrived: "GET /a"},
	{name: "TLS: Host in upper case", send: []string{to("LOOP.EXAMPLE.COM", "/a")}, want: "200", arrived: "GET /a"},
	{name: "TLS: Host with a trailing dot", send: []string{to("loop.example.com.", "/a")}, want: "200", arrived: "GET /a"},
	{name: "TLS: underscore", sni: "a_b.example.com", send: []string{to("a_b.example.com", "/a")}, want: "200", arrived: "GET /a"},
	{name: "TLS: IDNA", sni: "xn--bcher-kva.example.com", send: []string{to("xn--bcher-kva.example.com", "/a")}, want: "200", arrived: "GET /a"},
	{name: "TLS: empty Host", send: []string{to("", "/a")}, want: "400", kind: record.IsMalformed},
	{name: "TLS: HTTP/1.0 without Host", send: []string{"GET /a HTTP/1.0\r\nUser-Agent: ExampleBot/1.0\r\n\r\n"}, want: "200", arrived: "GET /a"},
	{name: "TLS: an address as Host", send: []string{to("127.0.0.1", "/a")}, want: "421", kind: record.IsMalformed},
	{name: "TLS: userinfo", send: []string{to("me@loop.example.com", "/a")}, want: "400"},
	{name: "TLS: a whole URL", send: []string{"GET https://loop.example.com/a HTTP/1.1" + loopHost + "\r\n"}, want: "400", kind: record.IsMalformed, body: "for a proxy"},
	{name: "TLS: CONNECT", send: []string{"CONNECT loop.example.com:443 HTTP/1.1" + loopHost + "\r\n"}, want: "405", kind: record.IsMalformed},
	{name: "TLS: an upload", send: []string{"POST /up HTTP/1.1" + loopHost + "Content-Length: 5\r\n\r\nhello"}, want: "200", arrived: "POST /up"},
	{name: "TLS: pipelined", send: []string{get("/a") + get("/private/") + get("/c")}, want: "200 403 200", arrived: "GET /a, GET /c"},
	{name: "TLS: unknown ALPN", alpn: "spdy/3", send: []string{get("/a")}, want: "200", arrived: "GET /a"},
	{name: "TLS: no HTTP inside", send: []string{"EHLO mail.example\r\n\r\n"}, want: "400"},
	{name: "TLS: the gate's own page", sni: "robotsgate.invalid", send: []string{to("robotsgate.invalid", "/ca.pem")}, want: "200", body: "BEGIN CERTIFICATE"},
	{name: "TLS: a forbidden address", sni: "metadata.example.com", send: []string{to("metadata.example.com", "/a")}, want: "403", kind: record.ByGuard},
	{name: "TLS: a name that does not resolve", sni: "unknown.example.com", send: []string{to("unknown.example.com", "/a")}, want: "502"},
	{name: "TLS: a forbidden port", gate: "ports", send: []string{get("/a")}, want: "403", kind: record.ByGuard, body: "port"},
	{name: "TLS: a forbidden host", gate: "deny host", send: []string{get("/a")}, want: "403", kind: record.ByGuard, body: "loop.example.com"},
	{name: "TLS: denied by an override", gate: "deny override", send: []string{get("/a")}, want: "403", kind: "override", body: "by hand"},
	{name: "TLS: allowed by an override", gate: "allow override", send: []string{get("/private/a")}, want: "200", arrived: "GET /private/a"},
	{name: "TLS: report mode", gate: "report", send: []string{get("/private/a")}, want: "200", arrived: "GET /private/a"},
	{name: "TLS: an unknown client", gate: "unknown", send: []string{get("/a")}, want: "403", kind: record.ByLogin},
	{name: "TLS: a client that needs a login", gate: "logins", send: []string{get("/a")}, want: "403", kind: record.ByLogin, body: "redirected"},
	{name: "TLS: a client known by its address", gate: "known", send: []string{get("/a")}, want: "200", arrived: "GET /a"},
	{name: "TLS: a client known by its User-Agent", gate: "agent", send: []string{get("/a"), strings.Replace(get("/b"), "ExampleBot", "OtherBot", 1)}, want: "200 403", kind: record.ByLogin, arrived: "GET /a"},
	{name: "TLS: too early", gate: "pace", send: []string{get("/a"), get("/b")}, want: "200 429", kind: record.ByPace, arrived: "GET /a"},

	// Passthrough.
	{name: "passthrough: allowed", gate: "passthrough", send: []string{get("/private/a")}, want: "200", arrived: "GET /private/a"},
	{name: "passthrough: byte by byte", gate: "passthrough", hello: "bytes", send: []string{get("/a")}, want: "200", arrived: "GET /a"},
	{name: "passthrough: records of seven bytes", gate: "passthrough", hello: "records of 7", send: []string{get("/a")}, want: "200", arrived: "GET /a"},
	{name: "passthrough: 10,000 bytes of extensions", gate: "passthrough", hello: "10000 more", send: []string{get("/a")}, want: "200", arrived: "GET /a"},
	{name: "passthrough: denied", gate: "passthrough, closed", alert: "access denied", kind: "rule"},
	{name: "passthrough: denied by an override", gate: "passthrough, deny override", alert: "access denied", kind: "override"},
	{name: "passthrough: a forbidden host", gate: "passthrough, deny host", alert: "access denied", kind: record.ByGuard},
	{name: "passthrough: a forbidden port", gate: "passthrough, ports", alert: "access denied", kind: record.ByGuard},
	{name: "passthrough: TLS on port 80 is https, since only a CONNECT to this port may mean http", gate: "passthrough, ports", port: "80", alert: "access denied", kind: record.ByGuard},
	{name: "passthrough: a forbidden address", gate: "passthrough", sni: "metadata.example.com", alert: "access denied", kind: record.ByGuard},
	{name: "passthrough: a name that does not resolve", gate: "passthrough", sni: "unknown.example.com", alert: "access denied"},
	{name: "passthrough: an unknown client", gate: "passthrough, unknown", alert: "access denied", kind: record.ByLogin},
	{name: "passthrough: a client that needs a login", gate: "passthrough, logins", alert: "access denied", kind: record.ByLogin},
	{name: "passthrough: report mode", gate: "passthrough, closed, report", send: []string{get("/a")}, want: "200", arrived: "GET /a"},
	{name: "passthrough: the gate's own page", gate: "passthrough", sni: "robotsgate.invalid", send: []string{to("robotsgate.invalid", "/ca.pem")}, want: "200", body: "BEGIN CERTIFICATE"},
}

const http2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// redirectedGates are the ways to set up a gate, by their names.
var redirectedGates = map[string]func(*testing.T, *proxytest.Options){
	"closed":      func(_ *testing.T, o *proxytest.Options) { o.Robots = "User-agent: *\nDisallow: /\n" },
	"passthrough": func(_ *testing.T, o *proxytest.Options) { add(&o.Proxy, proxytest.PassThrough) },
	"impatient": func(_ *testing.T, o *proxytest.Options) {
		add(&o.Proxy, func(o *proxy.Options) { o.Limits.HeaderTimeout = 100 * time.Millisecond })
	},
	// A whole ClientHello must arrive in time, on a busy machine too.
	"one second": func(_ *testing.T, o *proxytest.Options) {
		add(&o.Proxy, func(o *proxy.Options) { o.Limits.HeaderTimeout = time.Second })
	},
	"ports": func(_ *testing.T, o *proxytest.Options) { add(&o.Egress, func(e *proxy.Egress) { e.Ports = []int{1} }) },
	"deny host": func(t *testing.T, o *proxytest.Options) {
		add(&o.Egress, func(e *proxy.Egress) { e.DenyHosts = []glob.Glob{proxytest.MustHost(t, "loop.*")} })
	},
	"report": func(_ *testing.T, o *proxytest.Options) {
		add(&o.Engine, func(c *policy.Config) { c.Crawlers.Default.Mode = policy.Report })
	},
	"deny override": func(t *testing.T, o *proxytest.Options) {
		override(t, o, "loop.*", policy.Override{Action: policy.Deny, Reason: "by hand"})
	},
	"allow override": func(t *testing.T, o *proxytest.Options) {
		override(t, o, "loop.*", policy.Override{Action: policy.Allow, Reason: "by hand"})
	},
	"deny paths": func(t *testing.T, o *proxytest.Options) {
		override(t, o, "loop.*", policy.Override{Paths: []string{"/private"}, Action: policy.Deny})
	},
	"deny other": func(t *testing.T, o *proxytest.Options) {
		override(t, o, "loop.*", policy.Override{Crawlers: []string{"other"}, Action: policy.Deny})
	},
	"allowlist": func(t *testing.T, o *proxytest.Options) {
		override(t, o, "good.example.com", policy.Override{Action: policy.Allow})
		override(t, o, "*", policy.Override{Action: policy.Deny})
	},
	"unknown": func(_ *testing.T, o *proxytest.Options) {
		add(&o.Engine, knownCrawler(policy.Crawler{Sources: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}))
	},
	"known": func(_ *testing.T, o *proxytest.Options) {
		add(&o.Engine, knownCrawler(policy.Crawler{Sources: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}))
	},
	"agent": func(_ *testing.T, o *proxytest.Options) {
		add(&o.Engine, knownCrawler(policy.Crawler{UserAgents: []glob.Glob{glob.Text("example*")}}))
	},
	"logins": func(_ *testing.T, o *proxytest.Options) {
		add(&o.Engine, knownCrawler(policy.Crawler{Login: proxytest.LoginFor("team", proxytest.NewsPassword)}))
	},
	"optional": func(_ *testing.T, o *proxytest.Options) {
		add(&o.Engine, knownCrawler(policy.Crawler{Login: proxytest.LoginFor("team", proxytest.NewsPassword)}))
		add(&o.Engine, func(c *policy.Config) { c.Crawlers.RefuseUnknown = false })
	},
	"pace": func(t *testing.T, o *proxytest.Options) {
		pacer := pace.New(pace.Config{MinDelay: time.Minute, MaxDelay: time.Hour, MaxQueue: 10}, nil)
		t.Cleanup(pacer.Close)
		add(&o.Proxy, func(o *proxy.Options) { o.Settings.Pacer = pacer })
	},
}

// gateOptions returns the options of a gate that is set up in these ways of redirectedGates.
func gateOptions(t *testing.T, names string) (o proxytest.Options) {
	for name := range strings.SplitSeq(names, ", ") {
		if name != "" {
			redirectedGates[name](t, &o)
		}
	}
	return o
}

// override adds an override for hosts.
func override(t *testing.T, o *proxytest.Options, hosts string, more policy.Override) {
	more.Hosts = []glob.Glob{proxytest.MustHost(t, hosts)}
	add(&o.Engine, func(c *policy.Config) { c.Overrides = append(c.Overrides, more) })
}

// knownCrawler makes a crawler the only one that may use the gate.
func knownCrawler(k policy.Crawler) func(*policy.Config) {
	return func(c *policy.Config) {
		k.Name, k.Mode, k.DenyStatus = "known", policy.Enforce, 403
		c.Crawlers.Known, c.Crawlers.RefuseUnknown = []*policy.Crawler{&k}, true
	}
}

// add makes an option do what it does, and then more.
func add[T any](option *func(T), more func(T)) {
	before := *option
	*option = func(v T) {
		if before != nil {
			before(v)
		}
		more(v)
	}
}

// Requests of clients that know of no proxy are decided about like any others: the server name or Host says which
// origin they are for, and the port is the one that the client has connected to. A tunnel to a passthrough host is
// decided once. A client of a denied one can read no refusal, so its connection is closed with an alert.
func TestTransparentKit(t *testing.T) {
	for _, c := range redirectedCases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(t)
		})
	}
}

func (c redirectedCase) run(t *testing.T) {
	o := gateOptions(t, c.gate)
	var g *proxytest.Gate
	add(&o.Egress, func(e *proxy.Egress) {
		e.Own = func() []netip.AddrPort { return []netip.AddrPort{netip.MustParseAddrPort(g.Addr)} }
	})
	g = proxytest.Start(t, o)
	inClear := c.sni == "-"
	port := portOf(g.HTTPS)
	switch {
	case c.port == "GATE":
		_, port, _ = net.SplitHostPort(g.Addr)
	case c.port != "":
		port = c.port
	case inClear:
		port = portOf(g.HTTP)
	}
	conn := dialed(t, redirect(t, g, port))
	sending := &helloForm{Conn: conn, form: c.hello}
	stream := net.Conn(sending)
	var err error
	if !inClear {
		var secure *tls.Conn
		if secure, err = c.handshake(g, sending); err == nil {
			stream = secure
		}
	}
	if c.alert != "" {
		if err == nil || !strings.HasSuffix(err.Error(), "tls: "+c.alert) {
			t.Errorf("the handshake: %v, want %s", err, c.alert)
		}
	} else if err != nil {
		t.Fatal(err)
	} else {
		c.exchange(t, stream, port)
	}
	conn.Close()
	c.check(t, g, port)
}

func (c redirectedCase) passes() bool { return strings.HasPrefix(c.gate, "passthrough") }

// handshake is the client's half of the handshake.
func (c redirectedCase) handshake(g *proxytest.Gate, conn net.Conn) (*tls.Conn, error) {
	config := &tls.Config{RootCAs: g.Roots, ServerName: c.sni}
	if c.sni == "" {
		config.ServerName = "loop.example.com"
	}
	if c.passes() && c.sni != "robotsgate.invalid" {
		config.RootCAs = g.OriginRoots
	}
	if c.alpn != "" {
		config.NextProtos = []string{c.alpn}
	}
	if n, ok := strings.CutSuffix(c.hello, " more"); ok {
		bytes, _ := strconv.Atoi(n)
		config.NextProtos = []string{"http/1.1"}
		for range bytes / 250 {
			config.NextProtos = append(config.NextProtos, strings.Repeat("x", 249))
		}
	}
	secure := tls.Client(conn, config)
	return secure, secure.Handshake()
}

// exchange sends the requests and compares the answers.
func (c redirectedCase) exchange(t *testing.T, stream net.Conn, port string) {
	t.Helper()
	r := bufio.NewReader(stream)
	wants := strings.Fields(c.want)
	whole := hello(t, "loop.example.com")
	bytes := strings.NewReplacer("PORT", port, "HELLO", whole, "HALF", whole[:len(whole)/2],
		"HUGE", "\x16\x03\x01\x00\x04\x01\x00\xea\x60"+strings.Repeat("\x16\x03\x01\x00\x01x", 11000)) // 60,000 bytes, one by one
	for _, request := range c.send {
		io.WriteString(stream, bytes.Replace(request))
		for n := max(1, strings.Count(request, " HTTP/1.1\r\nHost")); n > 0 && len(wants) > 0; n-- {
			want := wants[0]
			wants = wants[1:]
			resp, err := http.ReadResponse(r, nil)
			if want == "closed" {
				if err == nil {
					t.Errorf("answered with %d", resp.StatusCode)
				}
				return
			}
			if err != nil {
				t.Fatalf("no answer, want %s: %v", want, err)
			}
			body, err := io.ReadAll(resp.Body)
			if err != nil && want != "431" { // then the rest of the request is not read, which breaks off the connection
				t.Fatal(err)
			}
			if got := strconv.Itoa(resp.StatusCode); got != want {
				t.Errorf("got %s, want %s: %s", got, want, body)
			}
			if c.passes() && resp.Header.Get("Robots-Gate-Id") != "" {
				t.Errorf("the gate has seen the answer: %v", resp.Header)
			}
			if len(wants) == 0 && !strings.Contains(string(body), c.body) {
				t.Errorf("got %s, want %q in it", body, c.body)
			}
		}
	}
	if len(wants) > 0 {
		if _, err := r.ReadByte(); wants[0] != "closed" || err == nil {
			t.Errorf("missing: %q, %v", wants, err)
		}
	}
}

// check compares the counts, the last record and what has arrived.
func (c redirectedCase) check(t *testing.T, g *proxytest.Gate, port string) {
	t.Helper()
	proxytest.Eventually(t, "the connection is counted", func() bool {
		n := g.Proxy.Redirections()
		return c.reason != "" && n.Refused[c.reason] == 1 || c.reason == "" && (n.Served == 1 || c.name == "a probe of the port")
	})
	var refused int64
	for _, n := range g.Proxy.Redirections().Refused {
		refused += n
	}
	if want := int64(len(strings.Fields(string(c.reason)))); refused != want {
		t.Errorf("%d connections are refused, want %d", refused, want)
	}
	var arrived []string
	if c.arrived != "" {
		arrived = strings.Split(c.arrived, ", ")
	}
	if got := g.Arrived(); !slices.Equal(got, arrived) {
		t.Errorf("reached the origin: %q, want %q", got, arrived)
	}
	if c.kind == "" && c.arrived == "" {
		return
	}
	var x *record.Record
	proxytest.Eventually(t, "the request is recorded, and a refusal as "+string(c.kind), func() bool {
		all := g.Records()
		if len(all) > 0 {
			x = all[len(all)-1]
		}
		return x != nil && (c.kind == "" && x.Decision != "" || c.kind != "" && x.Kind() == c.kind)
	})
	if x.Client != "127.0.0.1" || x.Tunnel != (c.sni != "-") || (c.kind == "" || c.kind == "rule") && x.Decision == "" {
		t.Errorf("record: %+v", x)
	}
	if c.passes() && (x.Method != "CONNECT" || x.Address() != "https://"+cmp.Or(c.sni, "loop.example.com")+":"+port) {
		t.Errorf("the record of the tunnel: %+v", x)
	}
	if status := cmp.Or(c.want, "403"); len(status) == 3 && strconv.Itoa(x.Status) != status {
		t.Errorf("the record says %d, want %s", x.Status, status)
	}
}

// A helloForm sends what is written in another form. The first write may be a ClientHello.
type helloForm struct {
	net.Conn
	form  string
	later bool
}

func (h *helloForm) Write(p []byte) (int, error) {
	if h.later {
		return h.Conn.Write(p)
	}
	h.later = true
	form, rest, _ := strings.Cut(h.form, ", ")
	sent := p
	if n, ok := strings.CutPrefix(form, "records of "); ok {
		size, _ := strconv.Atoi(n)
		sent = nil
		for piece := range slices.Chunk(p[5:], size) {
			sent = append(append(sent, p[0], p[1], p[2], byte(len(piece)>>8), byte(len(piece))), piece...)
		}
		form = rest
	}
	var err error
	switch form {
	case "bytes":
		_, err = pieces{h.Conn}.Write(sent)
	case "slow":
		for i := range sent {
			if _, err = h.Conn.Write(sent[i : i+1]); err != nil {
				break
			}
			<-time.After(2 * time.Millisecond)
		}
		err = nil // the gate has closed the connection
	case "end":
		h.Conn.Write(sent)
		err = h.Conn.(*net.TCPConn).CloseWrite()
	default:
		_, err = h.Conn.Write(sent)
	}
	return len(p), err
}
