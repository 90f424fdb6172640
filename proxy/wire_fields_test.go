package proxy

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// What of a request's fields is for the next hop, and what could lead an origin
// elsewhere than was decided.
func TestWireFields(t *testing.T) { runWire(t, fieldRows()) }

func fieldRows() []wireRow {
	const connection = "HTTP/2 has no connection fields"
	ok, denied := expect{want: 200, arrives: "GET /ok"}, expect{want: 403}
	closes := expect{want: 200, arrives: "GET /ok", closes: true}
	kept := expect{want: 200, arrives: "GET /ok\r\nX-Kept: yes\r\n\r\n"}
	socket := "Sec-Websocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-Websocket-Version: 13\r\n"
	rows := []wireRow{
		// Hop by hop (RFC 9110, 7.6.1).
		{name: "Connection names a field", fields: "Connection: X-Hop\r\nX-Hop: 1\r\nX-Kept: yes\r\n", noHTTP2: connection, expect: kept},
		{name: "Connection names fields in any case", fields: "Connection: x-hop ,\tX-HOP2\r\nconnection: X-Hop3\r\nX-Hop: 1\r\nx-hop2: 2\r\nX-hOP3: 3\r\nX-Kept: yes\r\n", noHTTP2: connection, expect: kept},
		{name: "Connection: close", fields: "Connection: close\r\n", noHTTP2: connection, expect: closes},
		{name: "Connection: Close among others", fields: "Connection: X-Hop, Close\r\nX-Hop: 1\r\n", noHTTP2: connection, expect: closes},
		{name: "Connection: keep-alive", fields: "Connection: keep-alive\r\nKeep-Alive: timeout=5\r\n", noHTTP2: connection, expect: ok},
		{name: "Connection names Host", fields: "Connection: Host\r\n", noHTTP2: connection, expect: ok},
		{name: "Connection names Content-Length", method: "POST", fields: "Connection: Content-Length\r\nContent-Length: 3\r\n", body: "abc", noHTTP2: connection, expect: expect{want: 200, arrives: "POST /ok\r\nContent-Length: 3\r\n\r\nabc"}},
		{name: "Connection names Transfer-Encoding", method: "POST", fields: "Connection: Transfer-Encoding\r\nTransfer-Encoding: chunked\r\n", body: "3\r\nabc\r\n0\r\n\r\n", noHTTP2: connection,
			expect: expect{want: 200, arrives: "POST /ok\r\nTransfer-Encoding: chunked\r\n\r\nabc", closes: true}},
		{name: "Connection names User-Agent, by which was decided", fields: "Connection: User-Agent\r\nUser-Agent: ExampleBot\r\n", noHTTP2: connection, expect: expect{want: 200, arrives: "GET /ok\r\nUser-Agent: ExampleBot\r\n\r\n"}},
		{name: "Connection names the decision", fields: "Connection: Robots-Gate-Decision, Robots-Gate-Id, Proxy-Status\r\n", noHTTP2: connection,
			expect: expect{want: 200, arrives: "GET /ok", has: "Robots-Gate-Decision: allow;reason=no-match\r\nRobots-Gate-Id: \""}},
		{name: "Connection names the decision, denied", path: "/private/x", fields: "Connection: Robots-Gate-Decision, Proxy-Status\r\n", noHTTP2: connection,
			expect: expect{want: 403, has: "Robots-Gate-Decision: deny;reason=rule\r\nProxy-Status: robotsgate;error=http_request_denied"}},
		{name: "Proxy-Connection", fields: "Proxy-Connection: keep-alive\r\nX-Kept: yes\r\n", noHTTP2: connection, expect: kept},
		{name: "Keep-Alive", fields: "Keep-Alive: timeout=5, max=1000\r\nX-Kept: yes\r\n", noHTTP2: connection, expect: kept},
		{name: "Proxy-Authorization (RFC 9110, 11.7.2)", fields: "Proxy-Authorization: Basic eDp5\r\nX-Kept: yes\r\n", expect: kept},
		{name: "Proxy-Authorization twice, in another case", fields: "PROXY-AUTHORIZATION: Basic eDp5\r\nproxy-authorization: Bearer x\r\nX-Kept: yes\r\n", expect: kept},
		{name: "Proxy_Authorization", fields: "Proxy_Authorization: Basic eDp5\r\nX-Kept: yes\r\n", expect: kept},
		{name: "Proxy-Authenticate", fields: "Proxy-Authenticate: Basic\r\nProxy-Authentication-Info: x\r\nX-Kept: yes\r\n", expect: kept},
		{name: "Authorization is the origin's", fields: "Authorization: Basic eDp5\r\n", expect: expect{want: 200, arrives: "GET /ok\r\nAuthorization: Basic eDp5\r\n\r\n"}},
		{name: "TE (RFC 9110, 10.1.4)", fields: "TE: deflate\r\nConnection: TE\r\nX-Kept: yes\r\n", noHTTP2: connection, expect: kept},
		{name: "TE: trailers", fields: "TE: trailers\r\n", h2: ":method: GET\n:scheme: https\n:authority: ORIGIN\n:path: /ok\nte: trailers",
			expect: ok},
		{name: "Trailer", fields: "Trailer: X-Sum\r\nX-Kept: yes\r\n", expect: kept},
		{name: "Expect of something else (RFC 9110, 10.1.1)", fields: "Expect: 200-ok\r\n", expect: expect{want: 417, closes: true}, inHTTP2: &expect{want: 200, arrives: "GET /ok\r\nExpect: 200-ok\r\n\r\n"}},

		// Connection fields in HTTP/2 (RFC 9113, 8.2.2).
		{name: "HTTP/2: Connection", fields: "Connection: X-Hop\r\nX-Hop: 1\r\n", noClear: noPseudo, noTunnel: noPseudo, expect: expect{want: 400}},
		{name: "HTTP/2: Proxy-Connection", fields: "Proxy-Connection: keep-alive\r\n", noClear: noPseudo, noTunnel: noPseudo, expect: expect{want: 400}},
		{name: "HTTP/2: Keep-Alive", fields: "Keep-Alive: timeout=5\r\n", noClear: noPseudo, noTunnel: noPseudo, expect: expect{want: 400}},
		{name: "HTTP/2: Upgrade", fields: "Upgrade: websocket\r\n", noClear: noPseudo, noTunnel: noPseudo, expect: expect{want: 400}},
		{name: "HTTP/2: TE", fields: "TE: gzip\r\n", noClear: noPseudo, noTunnel: noPseudo, expect: expect{want: 400}},

		// Switches of protocol (RFC 9110, 7.8).
		{name: "WebSocket, denied", path: "/private/x", fields: "Connection: Upgrade\r\nUpgrade: websocket\r\n" + socket, noHTTP2: connection, expect: denied},
		{name: "WebSocket, denied in other words", path: "/a/%2e%2e/private/x", fields: "Connection: keep-alive, upgrade\r\nUpgrade: WebSocket\r\n" + socket, noHTTP2: connection, expect: denied},
		{name: "WebSocket, not accepted", fields: "Connection: Upgrade\r\nUpgrade: websocket\r\n" + socket, noHTTP2: connection, expect: expect{want: 200, arrives: "GET /ok\r\nConnection: Upgrade\r\n" + socket + "Upgrade: websocket\r\n\r\n"}},
		{name: "WebSocket among others, not accepted", fields: "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c, websocket\r\nHTTP2-Settings: AAMAAABk\r\n" + socket, noHTTP2: connection,
			expect: expect{want: 200, arrives: "GET /ok\r\nConnection: Upgrade\r\n" + socket + "Upgrade: websocket\r\n\r\n"}},
		{name: "WebSocket by POST", method: "POST", fields: "Connection: Upgrade\r\nUpgrade: websocket\r\n", noHTTP2: connection, expect: expect{want: 200, arrives: "POST /ok\r\nContent-Length: 0\r\n\r\n"}},
		{name: "WebSocket with a body (RFC 6455, 4.1)", fields: "Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 3\r\n", body: "abc", noHTTP2: connection, expect: expect{want: 200, arrives: "GET /ok\r\nContent-Length: 3\r\n\r\nabc"}},
		{name: "WebSocket with chunks", fields: "Connection: Upgrade\r\nUpgrade: websocket\r\nTransfer-Encoding: chunked\r\n", body: "3\r\nabc\r\n0\r\n\r\n", noHTTP2: connection, expect: expect{want: 200, arrives: "GET /ok\r\nTransfer-Encoding: chunked\r\n\r\nabc", closes: true}},
		{name: "Upgrade that Connection does not name", fields: "Upgrade: websocket\r\n", noHTTP2: connection, expect: ok},
		{name: "WebSocket, accepted unasked", fields: "Upgrade: websocket\r\n", reply: wireReply{bytes: "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"}, noHTTP2: connection, expect: expect{want: 502, arrives: "GET /ok"}},
		{name: "WebSocket, accepted as h2c", fields: "Connection: Upgrade\r\nUpgrade: websocket\r\n", reply: wireReply{bytes: "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"}, noHTTP2: connection,
			expect: expect{want: 502, arrives: "GET /ok\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"}},
		{name: "h2c (RFC 7540, 3.2)", fields: "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\nX-Kept: yes\r\n", noHTTP2: connection, expect: kept},
		{name: "h2c, denied", path: "/private/x", fields: "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n", noHTTP2: connection, expect: denied},
		{name: "h2c, accepted", fields: "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n", reply: wireReply{bytes: "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"}, noHTTP2: connection, expect: expect{want: 502, arrives: "GET /ok"}},
		{name: "TLS (RFC 2817)", fields: "Connection: Upgrade\r\nUpgrade: TLS/1.0\r\nX-Kept: yes\r\n", noHTTP2: connection, expect: kept},

		// What only the gate says.
		{name: "the gate's own names", fields: "Robots-Gate-Decision: allow\r\nRobots-Gate-Id: \"x\"\r\nROBOTS-GATE-ANYTHING: x\r\nX-Kept: yes\r\n", expect: kept},
		{name: "the gate's own names, with underscores", fields: "Robots_Gate_Decision: allow\r\nrobots_gate-id: x\r\nX-Kept: yes\r\n", expect: kept},

		{name: "rerouting: Forwarded (RFC 7239, 4)", fields: "Forwarded: host=other.example;proto=http\r\nX-Kept: yes\r\n", expect: kept},

		// A method in a field changes nothing about what was decided.
		{name: "a method in a field", fields: "X-HTTP-Method-Override: DELETE\r\n", expect: expect{want: 200, arrives: "GET /ok\r\nX-Http-Method-Override: DELETE\r\n\r\n"}},

		// Being asked to go on (RFC 9110, 10.1.1). In HTTP/2 net/http keeps Expect to itself.
		{name: "100-continue", method: "POST", fields: "Expect: 100-continue\r\n", body: "abc", waits: true, expect: expect{want: 200, arrives: "POST /ok\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\nabc", informs: []int{100}}, inHTTP2: &expect{want: 200, arrives: "POST /ok\r\nContent-Length: 3\r\n\r\nabc", informs: []int{100}}},
		{name: "100-continue in capitals, in chunks", method: "POST", fields: "Expect: 100-Continue\r\nTransfer-Encoding: chunked\r\n", body: "3\r\nabc\r\n0\r\n\r\n", waits: true, noHTTP2: noChunks,
			expect: expect{want: 200, arrives: "POST /ok\r\nTransfer-Encoding: chunked\r\nExpect: 100-Continue\r\n\r\nabc", closes: true, informs: []int{100}}},
		{name: "100-continue, not waited for", method: "POST", fields: "Expect: 100-continue\r\n", body: "abc", expect: expect{want: 200, arrives: "POST /ok\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\nabc", informs: []int{100}}, inHTTP2: &expect{want: 200, arrives: "POST /ok\r\nContent-Length: 3\r\n\r\nabc", informs: []int{100}}},
		{name: "100-continue, denied", method: "POST", path: "/private/x", fields: "Expect: 100-continue\r\n", body: "abc", waits: true, expect: expect{want: 403, closes: true},
			inHTTP2: &expect{want: 403, informs: []int{100}}},
		{name: "100-continue, refused by the origin", method: "POST", fields: "Expect: 100-continue\r\n", body: "abc", waits: true, reply: wireReply{bytes: "HTTP/1.1 401 Unauthorized\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", early: true, close: true},
			noHTTP2: "net/http does not pass it on", expect: expect{want: 401, arrives: "POST /ok\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n", closes: true}},
		{name: "100-continue of HTTP/1.0", method: "POST", version: "HTTP/1.0", fields: "Expect: 100-continue\r\n", body: "abc", noHTTP2: noVersion, expect: expect{want: 200, arrives: "POST /ok\r\nContent-Length: 3\r\n\r\nabc", closes: true}},
		{name: "100-continue without a body", fields: "Expect: 100-continue\r\n", expect: expect{want: 200, arrives: "GET /ok\r\nExpect: 100-continue\r\n\r\n"}, inHTTP2: &ok},

		{name: "HEAD", method: "HEAD", expect: expect{want: 200, arrives: "HEAD /ok", has: "Content-Length: 5"}},
		{name: "HEAD, denied", method: "HEAD", path: "/private/x", expect: denied},
		{name: "HEAD, bad", method: "HEAD", path: "/a\\b", expect: expect{want: 400}},
		{name: "HEAD of HTTP/1.0", method: "HEAD", version: "HTTP/1.0", noHTTP2: noVersion, expect: expect{want: 200, arrives: "HEAD /ok", has: "Content-Length: 5", closes: true}},
		{name: "HEAD with a body", method: "HEAD", body: "abc", expect: expect{want: 200, arrives: "HEAD /ok\r\nContent-Length: 3\r\n\r\nabc"}},
	}
	for _, row := range reroutingRows() {
		fields := row[0] + ": /private/x\r\nX-Kept: yes\r\n" + row[0] + ": /private/y\r\n"
		rows = append(rows, wireRow{name: "rerouting: " + row[0], fields: fields, expect: kept})
	}
	for _, name := range []string{"SCRIPT_NAME", "Script_Name", "Script-Name", "PATH_INFO", "X_Original_URL", "X_REWRITE-URL", "x-forwarded_uri", "X_FORWARDED_HOST", "X.Original.URL", "X!Rewrite~URL"} {
		rows = append(rows, wireRow{name: "rerouting, spelled " + name, fields: name + ": /private/x\r\nX-Kept: yes\r\n", expect: kept})
	}
	rows = append(rows,
		wireRow{name: "rerouting: Connection names it", fields: "Connection: SCRIPT_NAME\r\nSCRIPT_NAME: /private\r\nScript-Name: /private\r\nX-Kept: yes\r\n", noHTTP2: connection, expect: kept},
		wireRow{name: "rerouting: in a trailer", method: "POST", fields: "Transfer-Encoding: chunked\r\nTrailer: SCRIPT_NAME\r\n", body: "3\r\nabc\r\n0\r\nSCRIPT_NAME: /private\r\n\r\n", noHTTP2: noChunks,
			expect: expect{want: 200, arrives: "POST /ok\r\nTransfer-Encoding: chunked\r\n\r\nabc", closes: true}},
	)
	return rows
}

// The same where the origin speaks HTTP/2: framing and fields must come out alike.
func TestWireToHTTP2(t *testing.T) {
	rows := slices.DeleteFunc(slices.Concat(framingRows(), fieldRows()), func(row wireRow) bool {
		lines := strings.ToLower(row.fields)
		return row.reply != wireReply{} || strings.Contains(lines, "websocket") || strings.Contains(lines, "expect:") // which are HTTP/1.1's
	})
	withEither(t, func(t *testing.T, onlyNetHTTP bool) { newWire(t, true, onlyNetHTTP).runAll(t, rows) })
}

// reroutingRows returns the columns of each row of the table of headers that reroute a request.
func reroutingRows() (rows [][]string) {
	table, err := os.ReadFile("internal/header/rerouting.txt")
	if err != nil {
		panic(err)
	}
	for line := range strings.Lines(string(table)) {
		if !strings.HasPrefix(line, "#") && line != "\n" {
			rows = append(rows, strings.Fields(line))
		}
	}
	return rows
}
