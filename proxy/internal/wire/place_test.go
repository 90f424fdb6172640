package wire

import (
	"strings"
	"testing"
)

// What a request says of where it goes: request target, Host, :authority, server
// name and CONNECT.
func TestWirePlaces(t *testing.T) {
	const (
		alone  = "HTTP/2 has no forms of a target"
		fields = "HTTP/2 has :authority"
	)
	ok, closed, open := expect{want: 200, arrives: "GET /ok"}, expect{want: 400, closes: true}, expect{want: 400}
	elsewhere, notServed := expect{want: 421, has: "Proxy-Status: robotsgate;error=http_request_denied"}, expect{want: 405, has: "Allow: GET, HEAD, "}
	runWire(t, []wireRow{
		// Absolute-form beats Host (RFC 9112, 3.2.2).
		{name: "absolute-form, another Host", raw: "GET http://ORIGIN/ok HTTP/1.1\r\nHost: other.example\r\n\r\n", noTunnel: "there it is https", noHTTP2: alone, expect: ok},
		{name: "absolute-form, another Host, denied", raw: "GET http://ORIGIN/private/x HTTP/1.1\r\nHost: other.example\r\n\r\n", noTunnel: "there it is https", noHTTP2: alone, expect: expect{want: 403}},
		{name: "absolute-form, Host with a path", raw: "GET http://ORIGIN/ok HTTP/1.1\r\nHost: ORIGIN/private\r\n\r\n", noTunnel: "there it is https", noHTTP2: alone,
			expect: expect{want: 400, either: true}},
		{name: "absolute-form, empty Host", raw: "GET http://ORIGIN/ok HTTP/1.1\r\nHost:\r\n\r\n", noTunnel: "there it is https", noHTTP2: alone, expect: ok},
		{name: "absolute-form of the tunnel, another Host", raw: "GET https://ORIGIN/ok HTTP/1.1\r\nHost: other.example\r\n\r\n", noHTTP2: alone, expect: ok},
		{name: "absolute-form of https", raw: "GET https://ORIGIN/private/x HTTP/1.1\r\nHost: ORIGIN\r\n\r\n", noHTTP2: alone, expect: expect{want: 403}},
		{name: "absolute-form of http", raw: "GET http://ORIGIN/ok HTTP/1.1\r\nHost: ORIGIN\r\n\r\n", noHTTP2: alone, expect: ok, inTunnel: &open},
		{name: "absolute-form of another host", raw: "GET https://other.example/ok HTTP/1.1\r\nHost: ORIGIN\r\n\r\n", noClear: "there it is what a proxy is for", noHTTP2: alone, expect: open},
		{name: "absolute-form of another port", raw: "GET https://ORIGIN:8443/ok HTTP/1.1\r\nHost: ORIGIN\r\n\r\n", noClear: "there it is what a proxy is for", noHTTP2: alone, expect: open},
		{name: "absolute-form in :path", h2: ":method: GET\n:scheme: https\n:authority: ORIGIN\n:path: https://ORIGIN/ok", noClear: fields, noTunnel: fields, expect: open},
		{name: "absolute-form of another host in :path", h2: ":method: GET\n:scheme: https\n:authority: ORIGIN\n:path: https://other.example/ok", noClear: fields, noTunnel: fields, expect: open},
		{name: "scheme in upper case", raw: "GET HTTP://ORIGIN/ok HTTP/1.1\r\nHost: ORIGIN\r\n\r\n", noTunnel: "there it is https", noHTTP2: alone, expect: ok},
		{name: "no path", raw: "GET http://ORIGIN HTTP/1.1\r\nHost: ORIGIN\r\n\r\n", noTunnel: "there it is https", noHTTP2: alone, expect: expect{want: 200, arrives: "GET /"}},
		{name: "a query without a path", raw: "GET http://ORIGIN?q HTTP/1.1\r\nHost: ORIGIN\r\n\r\n", noTunnel: "there it is https", noHTTP2: alone, expect: expect{want: 200, arrives: "GET /?q"}},
		{name: "a fragment without a path", raw: "GET http://ORIGIN#f HTTP/1.1\r\nHost: ORIGIN\r\n\r\n", noTunnel: "there it is https", noHTTP2: alone, expect: closed},
		{name: "no host", raw: "GET http:///ok HTTP/1.1\r\nHost: ORIGIN\r\n\r\n", noHTTP2: alone, expect: open},
		{name: "one slash", raw: "GET http:/ORIGIN/ok HTTP/1.1\r\nHost: ORIGIN\r\n\r\n", noHTTP2: alone, expect: open},
		{name: "no slash", raw: "GET http:ORIGIN/ok HTTP/1.1\r\nHost: ORIGIN\r\n\r\n", noHTTP2: alone, expect: expect{want: 400, either: true}},
		{name: "ftp", raw: "GET ftp://ORIGIN/ok HTTP/1.1\r\nHost: ORIGIN\r\n\r\n", noHTTP2: alone, expect: open},
		{name: "ws", raw: "GET ws://ORIGIN/ok HTTP/1.1\r\nHost: ORIGIN\r\n\r\n", noHTTP2: alone, expect: open},
		{name: "file", raw: "GET file:///etc/passwd HTTP/1.1\r\nHost: ORIGIN\r\n\r\n", noHTTP2: alone, expect: open},
		{name: "no scheme", raw: "GET ORIGIN/ok HTTP/1.1\r\nHost: ORIGIN\r\n\r\n", noHTTP2: alone, expect: closed},
		{name: "only a query", raw: "GET ?q HTTP/1.1\r\nHost: ORIGIN\r\n\r\n", noHTTP2: alone, expect: closed},
		{name: "authority-form", raw: "GET ORIGIN:80 HTTP/1.1\r\nHost: ORIGIN\r\n\r\n", noHTTP2: alone, expect: expect{want: 400, either: true}},
		{name: "two slashes", raw: "GET //ORIGIN/ok HTTP/1.1\r\nHost: ORIGIN\r\n\r\n", noHTTP2: alone, expect: expect{want: 404}, inTunnel: &expect{want: 200, arrives: "GET //ORIGIN/ok"}},
		{name: "a path without its slash", path: "ok", noClear: "there a URL stands before it", expect: closed, inHTTP2: reset},
		{name: "no :path", h2: ":method: GET\n:scheme: https\n:authority: ORIGIN", noClear: fields, noTunnel: fields, inHTTP2: reset},
		{name: "an empty :path (RFC 9113, 8.3.1)", h2: ":method: GET\n:scheme: https\n:authority: ORIGIN\n:path: ", noClear: fields, noTunnel: fields, inHTTP2: reset},

		// Host, one and valid (RFC 9112, 3.2).
		{name: "no Host", raw: "GET TARGET/ok HTTP/1.1\r\n\r\n", expect: closed, h2: ":method: GET\n:scheme: https\n:path: /ok", inHTTP2: &open},
		{name: "two Hosts", raw: "GET TARGET/ok HTTP/1.1\r\nHost: ORIGIN\r\nHost: other.example\r\n\r\n", noHTTP2: fields, expect: closed},
		{name: "two Hosts, the other first", raw: "GET TARGET/ok HTTP/1.1\r\nHost: other.example\r\nHost: ORIGIN\r\n\r\n", noHTTP2: fields, expect: closed},
		{name: "the same Host twice", raw: "GET TARGET/ok HTTP/1.1\r\nHost: ORIGIN\r\nhost: ORIGIN\r\n\r\n", noHTTP2: fields, expect: closed},
		{name: "two hosts in Host", raw: "GET TARGET/ok HTTP/1.1\r\nHost: ORIGIN, other.example\r\n\r\n", noHTTP2: fields, expect: closed},
		{name: "Host with a path", raw: "GET /ok HTTP/1.1\r\nHost: ORIGIN/private\r\n\r\n", noClear: "there it is of the gate itself", noHTTP2: fields, expect: expect{want: 400, either: true}},
		{name: "Host, folded", raw: "GET TARGET/ok HTTP/1.1\r\nHost: ORIGIN\r\n .other.example\r\n\r\n", noHTTP2: fields, expect: closed},
		{name: "two :authority (RFC 9113, 8.3)", h2: ":method: GET\n:scheme: https\n:authority: ORIGIN\n:authority: other.example\n:path: /ok", noClear: fields, noTunnel: fields, inHTTP2: reset},
		{name: "Host instead of :authority (RFC 9113, 8.3.1)", h2: ":method: GET\n:scheme: https\n:path: /ok\nhost: ORIGIN", noClear: fields, noTunnel: fields, expect: ok},
		{name: "another Host instead of :authority", h2: ":method: GET\n:scheme: https\n:path: /ok\nhost: other.example", noClear: fields, noTunnel: fields, expect: elsewhere},
		{name: ":authority and another Host (RFC 9113, 8.3.1)", h2: ":method: GET\n:scheme: https\n:authority: ORIGIN\n:path: /ok\nhost: other.example", noClear: fields, noTunnel: fields,
			expect: elsewhere},
		{name: "another :authority and Host", h2: ":method: GET\n:scheme: https\n:authority: other.example\n:path: /ok\nhost: ORIGIN", noClear: fields, noTunnel: fields, expect: elsewhere},

		// Inside a tunnel all must agree (RFC 9110, 7.4).
		{name: "Host of another", authority: "other.example", noClear: noTunnel, expect: elsewhere},
		{name: "Host of another below", authority: "a.ORIGIN", noClear: noTunnel, expect: elsewhere},
		{name: "Host of another above", connect: "a.ORIGIN:443", sni: "a.ORIGIN", noClear: noTunnel, expect: elsewhere},
		{name: "Host of another port", authority: "ORIGIN:80", noClear: noTunnel, expect: elsewhere},
		{name: "Host of another, denied there", authority: "other.example", path: "/private/x", noClear: noTunnel, expect: elsewhere},
		{name: "server name of another (RFC 6066, 3)", sni: "other.example", noClear: noTunnel, expect: expect{want: 421, next: 421}},
		{name: "server name and Host of another", sni: "other.example", authority: "other.example", noClear: noTunnel, expect: expect{want: 421, next: 421}},
		{name: "CONNECT to another", connect: "other.example:443", noClear: noTunnel, expect: expect{want: 421, next: 421}},
		{name: "CONNECT to another, which Host names", connect: "other.example:443", authority: "other.example", noClear: noTunnel, expect: expect{want: 421, next: 421}},
		{name: "no server name", sni: "-", noClear: noTunnel, expect: ok},
		{name: "no server name, Host of another", sni: "-", authority: "other.example", noClear: noTunnel, expect: elsewhere},
		{name: "server name in upper case", sni: "SHOUTED", noClear: noTunnel, expect: ok},
		{name: "CONNECT in upper case, with a dot", connect: "SHOUTED.:443", noClear: noTunnel, expect: ok},
		{name: "CONNECT in upper case, denied", connect: "SHOUTED:443", path: "/private/x", noClear: noTunnel, expect: expect{want: 403}},

		// Methods that are not served (RFC 9110, 9.3.6 and 9.3.8).
		{name: "CONNECT in a tunnel", raw: "CONNECT ORIGIN:443 HTTP/1.1\r\nHost: ORIGIN:443\r\n\r\n", h2: ":method: CONNECT\n:authority: ORIGIN:443", noClear: "it opens a tunnel there", expect: notServed},
		{name: "CONNECT with a path", raw: "CONNECT /ok HTTP/1.1\r\nHost: ORIGIN\r\n\r\n", h2: ":method: CONNECT\n:scheme: https\n:authority: ORIGIN\n:path: /ok",
			expect: notServed, inClear: &open, inHTTP2: reset},
		{name: "connect", method: "connect", expect: notServed},
		{name: "WebSocket by CONNECT (RFC 8441)", h2: ":method: CONNECT\n:protocol: websocket\n:scheme: https\n:authority: ORIGIN\n:path: /ok", noClear: fields, noTunnel: fields, inHTTP2: reset},
		{name: "TRACE", method: "TRACE", expect: notServed},
		{name: "trace", method: "trace", expect: notServed},
		{name: "TRACE, denied", method: "TRACE", path: "/private/x", expect: notServed},
		{name: "OPTIONS *", raw: "OPTIONS * HTTP/1.1\r\nHost: ORIGIN\r\n\r\n", h2: ":method: OPTIONS\n:scheme: https\n:authority: ORIGIN\n:path: *", expect: notServed},
		{name: "OPTIONS without a path (RFC 9112, 3.2.4)", raw: "OPTIONS http://ORIGIN HTTP/1.1\r\nHost: ORIGIN\r\n\r\n", noTunnel: "there it is https", noHTTP2: alone, expect: notServed},
		{name: "GET *", raw: "GET * HTTP/1.1\r\nHost: ORIGIN\r\n\r\n", h2: ":method: GET\n:scheme: https\n:authority: ORIGIN\n:path: *", expect: notServed},
		{name: "DELETE", method: "DELETE", expect: expect{want: 200, arrives: "DELETE /ok"}},
		{name: "PROPFIND, denied", method: "PROPFIND", path: "/private/x", expect: expect{want: 403}},
		{name: "OPTIONS of a path", method: "OPTIONS", expect: expect{want: 200, arrives: "OPTIONS /ok"}},
		{name: "OPTIONS of a path, denied", method: "OPTIONS", path: "/private/x", expect: expect{want: 403}},
		{name: "a method nobody knows", method: "FROB", expect: expect{want: 200, arrives: "FROB /ok"}},
		{name: "get", method: "get", expect: expect{want: 200, arrives: "get /ok"}},
		{name: "a method that is no token", method: "G(T", expect: closed, inHTTP2: &open},
		{name: "a method with a request line", h2: ":method: GET /private/x HTTP/1.1\n:scheme: https\n:authority: ORIGIN\n:path: /ok", noClear: fields, noTunnel: fields, expect: open},
		{name: "PRI (RFC 9113, 3.4)", raw: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", noHTTP2: "it is spoken already", expect: expect{want: 405, closes: true}},

		{name: "long URL", path: "/" + strings.Repeat("a", 15<<10), expect: expect{want: 200, arrives: "GET /" + strings.Repeat("a", 15<<10)}},
		{name: "longer URL (RFC 9110, 15.5.15)", path: "/" + strings.Repeat("a", 16<<10), expect: expect{want: 414, has: "Proxy-Status: robotsgate;error=http_request_error"}},
		{name: "longer query", path: "/ok?" + strings.Repeat("a", 16<<10), expect: expect{want: 414, has: "Proxy-Status: robotsgate;error=http_request_error"}},
		{name: "longer URL, which is short when cleaned", path: strings.Repeat("/.", 9<<10), expect: expect{want: 414, has: "Proxy-Status: robotsgate;error=http_request_error"}},
		{name: "URL over the head's bound", path: "/" + strings.Repeat("a", 70<<10), expect: expect{want: 431, closes: true}, inHTTP2: &expect{want: broken, closes: true}},
	})
}
