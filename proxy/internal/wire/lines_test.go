package wire

import (
	"strings"
	"testing"
)

// How a request's head is written (RFC 9112, 2 to 5), and how much of it.
func TestWireLines(t *testing.T) {
	ok, closed := expect{want: 200, arrives: "GET /ok"}, expect{want: 400, closes: true}
	kept := expect{want: 200, arrives: "GET /ok\r\nX-A: b\r\n\r\n"}
	last := expect{want: 200, arrives: "GET /ok", closes: true}
	raw := func(name, lines string, e expect) wireRow {
		return wireRow{name: name, raw: lines, noHTTP2: noLines, expect: e}
	}
	field := func(name, lines string, e expect) wireRow {
		return raw(name, "GET TARGET/ok HTTP/1.1\r\nHost: ORIGIN\r\n"+lines+"\r\n", e)
	}
	version := func(v string, e expect) wireRow {
		return wireRow{name: "version " + v, version: v, noHTTP2: noVersion, expect: e}
	}
	runWire(t, []wireRow{
		// Lines (RFC 9112, 2.2): a bare LF may end one, a bare CR may not.
		raw("bare LF", "GET TARGET/ok HTTP/1.1\nHost: ORIGIN\n\n", ok),
		raw("bare LF, denied", "GET TARGET/private/x HTTP/1.1\nHost: ORIGIN\n\n", expect{want: 403}),
		raw("bare LF at the end", "GET TARGET/ok HTTP/1.1\r\nHost: ORIGIN\r\nX-A: b\r\n\n", kept),
		raw("bare LF before the last CRLF", "GET TARGET/ok HTTP/1.1\r\nHost: ORIGIN\r\nX-A: b\n\r\n", kept),
		raw("bare CR", "GET TARGET/ok HTTP/1.1\rHost: ORIGIN\r\r", closed),
		raw("bare CR at the end", "GET TARGET/ok HTTP/1.1\r\nHost: ORIGIN\r\n\r", closed),
		raw("two CRs", "GET TARGET/ok HTTP/1.1\r\r\nHost: ORIGIN\r\n\r\n", closed),
		raw("NUL behind the version", "GET TARGET/ok HTTP/1.1\x00\r\nHost: ORIGIN\r\n\r\n", closed),
		{name: "an empty line before", raw: "\r\nGET TARGET/ok HTTP/1.1\r\nHost: ORIGIN\r\n\r\n", noHTTP2: noLines, expect: expect{want: 400, closes: true}},

		// The request line (RFC 9112, 3).
		raw("two spaces", "GET  TARGET/ok HTTP/1.1\r\nHost: ORIGIN\r\n\r\n", closed),
		raw("two spaces behind", "GET TARGET/ok  HTTP/1.1\r\nHost: ORIGIN\r\n\r\n", closed),
		raw("a space at the end", "GET TARGET/ok HTTP/1.1 \r\nHost: ORIGIN\r\n\r\n", closed),
		raw("a space at the beginning", " GET TARGET/ok HTTP/1.1\r\nHost: ORIGIN\r\n\r\n", closed),
		raw("tabs", "GET\tTARGET/ok\tHTTP/1.1\r\nHost: ORIGIN\r\n\r\n", closed),
		raw("vertical tab", "GET TARGET/ok\x0bHTTP/1.1\r\nHost: ORIGIN\r\n\r\n", closed),
		raw("no version (HTTP/0.9)", "GET TARGET/ok\r\n\r\n", closed),
		raw("no target", "GET HTTP/1.1\r\nHost: ORIGIN\r\n\r\n", closed),
		raw("no method", "TARGET/ok HTTP/1.1\r\nHost: ORIGIN\r\n\r\n", closed),
		raw("a method of quotes", "\"GET\" TARGET/ok HTTP/1.1\r\nHost: ORIGIN\r\n\r\n", closed),
		raw("a method with a colon", "GET: TARGET/ok HTTP/1.1\r\nHost: ORIGIN\r\n\r\n", closed),
		raw("only blank lines", "\r\n\r\n\r\n\r\n", closed),
		raw("another protocol", "SSH-2.0-OpenSSH_9.6\r\n\r\n", closed),

		// The version (RFC 9112, 2.3).
		version("HTTP/1.0", last),
		{name: "HTTP/1.0 without Host", raw: "GET TARGET/ok HTTP/1.0\r\n\r\n", noHTTP2: noVersion, expect: last},
		{name: "HTTP/1.0, denied", path: "/private/x", version: "HTTP/1.0", noHTTP2: noVersion, expect: expect{want: 403, closes: true}},
		{name: "HTTP/1.0, kept alive", version: "HTTP/1.0", fields: "Connection: keep-alive\r\n", noHTTP2: noVersion, expect: ok},
		{name: "HTTP/1.0, kept alive by Proxy-Connection", version: "HTTP/1.0", fields: "Proxy-Connection: keep-alive\r\n", noHTTP2: noVersion, expect: last},
		{name: "HTTP/1.0, another Host", version: "HTTP/1.0", authority: "other.example", noClear: noTunnel, noHTTP2: noVersion, expect: expect{want: 421, closes: true}},
		version("HTTP/1.2", ok),
		version("HTTP/1.9", ok),
		version("HTTP/0.9", expect{want: 505, closes: true}),
		version("HTTP/2.0", expect{want: 505, closes: true}),
		version("HTTP/3.0", expect{want: 505, closes: true}),
		version("HTTP/9.9", expect{want: 505, closes: true}),
		version("HTTP/1", closed),
		version("HTTP/1.", closed),
		version("HTTP/.1", closed),
		version("HTTP/1.10", closed),
		version("HTTP/01.1", closed),
		version("HTTP/1.1.1", closed),
		version("HTTP/1.x", closed),
		version("HTTP/+1.1", closed),
		version("http/1.1", closed),
		version("HTTPS/1.1", closed),
		version("HTTP1.1", closed),
		version("ICAP/1.0", closed),

		// Fields (RFC 9112, 5).
		field("white space around a value", "X-A: \t b \t\r\n", kept),
		field("no white space before a value", "X-A:b\r\n", kept),
		field("white space before the colon", "X-A : b\r\n", closed),
		field("white space before the colon of Content-Length", "Content-Length : 3\r\n", closed),
		field("white space before the colon of Transfer-Encoding", "Transfer-Encoding\t: chunked\r\n", closed),
		field("white space before the colon of Host", "Host : other.example\r\n", closed),
		field("white space in a name", "X A: b\r\n", closed),
		field("a name with NUL", "X\x00A: b\r\n", closed),
		field("a name beyond ASCII", "X\xc3\xa4: b\r\n", closed),
		field("a name of nothing", ": b\r\n", closed),
		field("a name with parentheses", "X(A): b\r\n", closed),
		field("no colon", "X-A\r\n", closed),
		field("a value with NUL", "X-A: b\x00c\r\n", closed),
		field("a value with a control", "X-A: b\x01c\r\n", closed),
		field("a value with DEL", "X-A: b\x7fc\r\n", closed),
		field("a value with CR", "X-A: b\rX-C: d\r\n", closed),
		field("a value with LF", "X-A: b\nX-C: d\r\n", expect{want: 200, arrives: "GET /ok\r\nX-A: b\r\nX-C: d\r\n\r\n"}),
		field("a value beyond ASCII (RFC 9110, 5.5)", "X-A: b\xe4\xff\r\n", expect{want: 200, arrives: "GET /ok\r\nX-A: b\xe4\xff\r\n\r\n"}),
		field("a folded value (RFC 9112, 5.2)", "X-A: b\r\n c\r\n\td\r\n", expect{want: 200, arrives: "GET /ok\r\nX-A: b c d\r\n\r\n"}),
		field("a folded value that is a field", "X-A: b\r\n Content-Length: 3\r\n", expect{want: 200, arrives: "GET /ok\r\nX-A: b Content-Length: 3\r\n\r\n"}),
		field("a folded length", "Content-Length:\r\n 0\r\n", expect{want: 200, arrives: "GET /ok"}),
		raw("a folded first line", "GET TARGET/ok HTTP/1.1\r\n Host: ORIGIN\r\nX-A: b\r\n\r\n", closed),
		raw("a field before the request line", "X-A: b\r\nGET TARGET/ok HTTP/1.1\r\nHost: ORIGIN\r\n\r\n", closed),

		// The same in HTTP/2 (RFC 9113, 8.2.1), whose fields could become lines.
		h2Field("a name in upper case", "X-A: b"),
		h2Field("a name with a space", "x a: b"),
		h2Field("a name with a line", "x\r␊a: b"),
		h2Field("a value with a line", "x-a: b\r␊X-Original-URL: /private/"),
		h2Field("a value with LF", "x-a: b␊c"),
		h2Field("a value with CR", "x-a: b\rc"),
		h2Field("a value with NUL", "x-a: b\x00c"),
		h2Field("a pseudo-header that is none (RFC 9113, 8.3)", ":x: b"),
		h2Field("a pseudo-header of responses", ":status: 200"),
		h2Field("a pseudo-header behind fields", "x-a: b\n:path: /private/x"),
		h2Field("two paths", ":path: /private/x"),
		h2Field("two methods", ":method: POST"),
		h2Field("two schemes", ":scheme: http"),
		h2("a method with a line", ":method: GET /private/x HTTP/1.1\r␊X: y\n:scheme: https\n:authority: ORIGIN\n:path: /ok", expect{want: broken}),
		h2("a path with a line", ":method: GET\n:scheme: https\n:authority: ORIGIN\n:path: /ok HTTP/1.1\r␊X: y", expect{want: broken}),
		h2("an authority with a line", ":method: GET\n:scheme: https\n:authority: ORIGIN\r␊X: y\n:path: /ok", expect{want: broken}),
		h2("no method", ":scheme: https\n:authority: ORIGIN\n:path: /ok", expect{want: broken}),
		h2("no scheme", ":method: GET\n:authority: ORIGIN\n:path: /ok", expect{want: broken}),
		h2("another scheme", ":method: GET\n:scheme: ftp\n:authority: ORIGIN\n:path: /ok", expect{want: broken}),

		// How much (RFC 6585, 5).
		{name: "a long field", fields: "X-A: " + strings.Repeat("a", 40<<10) + "\r\n", expect: expect{want: 200, arrives: "GET /ok\r\nX-A: " + strings.Repeat("a", 40<<10) + "\r\n\r\n"}},
		{name: "a longer field", fields: "X-A: " + strings.Repeat("a", 70<<10) + "\r\n", expect: expect{want: 431, closes: true}, inHTTP2: &expect{want: broken, closes: true}},
		{name: "a longer name", fields: "X" + strings.Repeat("a", 70<<10) + ": b\r\n", expect: expect{want: 431, closes: true}, inHTTP2: &expect{want: broken, closes: true}},
		{name: "many fields", fields: strings.Repeat("X-A: b\r\n", 10<<10), expect: expect{want: 431, closes: true}, inHTTP2: &expect{want: 431}},
		{name: "many fields, denied", path: "/private/x", fields: strings.Repeat("X-A: b\r\n", 10<<10), expect: expect{want: 431, closes: true}, inHTTP2: &expect{want: 431}},
		{name: "a long method", method: strings.Repeat("A", 70<<10), expect: expect{want: 431, closes: true}, inHTTP2: &expect{want: broken, closes: true}},
		field("a longer fold", "X-A: b\r\n"+strings.Repeat(" c\r\n", 20<<10), expect{want: 431, closes: true}),
	})
}

func h2(name, lines string, e expect) wireRow {
	return wireRow{name: name, h2: lines, noClear: noPseudo, noTunnel: noPseudo, expect: e}
}

func h2Field(name, line string) wireRow {
	return h2("HTTP/2: "+name, ":method: GET\n:scheme: https\n:authority: ORIGIN\n:path: /ok\n"+line, expect{want: broken})
}

const noPseudo = "HTTP/1.1 has no such fields"
