package wire

import (
	"slices"
	"strings"
	"testing"
)

// What an origin may put on the wire, and what of it reaches a client. However
// it ends, the next answer is the next one's.
func TestWireReplies(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\n"
	whole := expect{want: 200, arrives: "GET /ok", content: "hello"}
	stray := func(e expect) expect { e.stray = true; return e }
	bad := expect{want: 502, arrives: "GET /ok", has: "Robots-Gate-Decision: allow\r\nProxy-Status: robotsgate;error="}
	unread := func(fault string) expect {
		e := bad
		e.has = "Robots-Gate-Decision: allow\r\nProxy-Status: robotsgate;error=" + fault
		return e
	}
	protocol, coding, tooLong := unread("http_protocol_error"), unread("http_response_transfer_coding"), unread("http_response_header_section_size")
	// It can't be told from a whole one but by the end of the connection.
	cut := expect{want: 200, orNone: true, arrives: "GET /ok", cut: true, closes: true}
	empty := func(status int) expect { return expect{want: status, arrives: "GET /ok"} }
	with := func(lines string) expect { e := whole; e.has = lines; return e }
	without := func(names string) expect {
		e := whole
		e.lacks, e.has = names, "X-Kept: yes\r\nRobots-Gate-Decision: allow;reason=no-match"
		return e
	}
	says := func(name, bytes string, e expect) wireRow {
		return wireRow{name: name, reply: wireReply{bytes: bytes}, expect: e}
	}
	ends := func(name, bytes string, e expect) wireRow {
		return wireRow{name: name, reply: wireReply{bytes: bytes, close: true}, expect: e}
	}
	floods := func(name, bytes, flood string, e expect) wireRow {
		return wireRow{name: name, reply: wireReply{bytes: bytes, flood: flood}, expect: e}
	}
	old := func(row wireRow) wireRow { // for an HTTP/1.0 client, to which the end of the connection ends the response
		row.name, row.version, row.noHTTP2 = "HTTP/1.0: "+row.name, "HTTP/1.0", noVersion
		row.expect.closes = true
		return row
	}
	const field = "X-Kept: yes\r\nContent-Length: 5\r\n"
	answers := func(name, fields string, e expect) wireRow {
		return says(name, head+fields+field+"\r\nhello", e)
	}
	truncated := ends("cut short of its length", head+"Content-Length: 6\r\n\r\nhello", cut)
	chunk := ends("cut before the last chunk", head+"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", cut)
	rows := []wireRow{
		// How it is framed (RFC 9112, 6.3).
		says("by its length", head+"Content-Length: 5\r\n\r\nhello", whole),
		says("by chunks", head+"Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\n\r\n", whole),
		ends("by the connection's end", head+"\r\nhello", whole),
		old(says("by chunks", head+"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", expect{want: 200, arrives: "GET /ok", content: "hello", lacks: "Transfer-Encoding"})),
		ends("by the connection's end, in HTTP/1.0", "HTTP/1.0 200 OK\r\n\r\nhello", whole),
		says("by a length, of HTTP/1.0", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello", whole),
		says("with Connection: close", head+"Connection: close\r\nContent-Length: 5\r\n\r\nhello", whole),
		says("by chunks and a length", head+"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", whole),
		says("by the same length twice", head+"Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", whole),
		says("by two lengths", head+"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!", protocol),
		says("by a list of lengths", head+"Content-Length: 5, 6\r\n\r\nhello!", protocol),
		says("by a negative length", head+"Content-Length: -5\r\n\r\nhello", protocol),
		says("by a length with a sign", head+"Content-Length: +5\r\n\r\nhello", protocol),
		says("by a length out of bounds", head+"Content-Length: 99999999999999999999\r\n\r\nhello", protocol),
		says("by an unknown coding", head+"Transfer-Encoding: xchunked\r\n\r\nhello", coding),
		says("by two codings", head+"Transfer-Encoding: gzip, chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", coding),
		says("by chunks twice", head+"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", coding),
		says("by identity", head+"Transfer-Encoding: identity\r\n\r\nhello", coding),
		ends("by a length with a space before its colon", head+"Content-Length : 6\r\n\r\nhello", bad),
		answers("a tag with a space before its colon", "X-Robots-Tag : noindex\r\n", with("X-Robots-Tag: noindex\r\nRobots-Gate-Tags: noindex;src=x-robots-tag;scope=\"*\"")),

		// What breaks off must not look whole (RFC 9112, 8).
		truncated, chunk, old(truncated), old(chunk),
		ends("cut inside a chunk", head+"Transfer-Encoding: chunked\r\n\r\n6\r\nhello", cut),
		ends("cut inside the last chunk", head+"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n", cut),
		says("a bad chunk", head+"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\n\r\n", cut),
		says("a chunk longer than its size", head+"Transfer-Encoding: chunked\r\n\r\n4\r\nhello\r\n0\r\n\r\n", cut),
		ends("cut before the body", head+"Content-Length: 5\r\n\r\n", cut),
		ends("a page, cut", head+"Content-Type: text/html\r\nContent-Length: 50\r\n\r\n<html><head>", cut),
		ends("cut inside the head", head+"Content-Len", bad),
		ends("cut inside the status line", "HTTP/1.1 2", bad),

		// No body there may be (RFC 9112, 6.3), and none is taken for the next answer.
		says("204", "HTTP/1.1 204 No Content\r\n\r\n", empty(204)),
		says("204 with a length", "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", empty(204)),
		says("304", "HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\nContent-Length: 5\r\n\r\n", expect{want: 304, arrives: "GET /ok", has: "Etag: \"x\""}),
		says("304 in chunks", "HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n", empty(304)),
		says("204 with a body", "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello", stray(empty(204))),
		says("204 with an answer as its body", "HTTP/1.1 204 No Content\r\n\r\n"+head+"Content-Length: 6\r\n\r\nforged", stray(empty(204))),
		says("205 with a body", "HTTP/1.1 205 Reset Content\r\nContent-Length: 5\r\n\r\nhello", expect{want: 205, arrives: "GET /ok", content: "hello"}),
		{name: "HEAD", method: "HEAD", reply: wireReply{bytes: head + "Content-Length: 5\r\n\r\n"}, expect: expect{want: 200, arrives: "HEAD /ok", has: "Content-Length: 5"}},
		{name: "HEAD in chunks", method: "HEAD", reply: wireReply{bytes: head + "Transfer-Encoding: chunked\r\n\r\n"}, expect: expect{want: 200, arrives: "HEAD /ok"}},
		{name: "HEAD with a body", method: "HEAD", reply: wireReply{bytes: head + "Content-Length: 5\r\n\r\nhello"}, expect: expect{want: 200, arrives: "HEAD /ok", has: "Content-Length: 5", stray: true}},
		{name: "HEAD with an answer as its body", method: "HEAD", reply: wireReply{bytes: head + "Content-Length: 44\r\n\r\n" + head + "Content-Length: 6\r\n\r\nforged"},
			expect: expect{stray: true, want: 200, arrives: "HEAD /ok"}},
		{name: "HEAD with chunks", method: "HEAD", reply: wireReply{bytes: head + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"},
			expect: expect{want: 200, arrives: "HEAD /ok", stray: true}},
		says("304 with an answer as its body", "HTTP/1.1 304 Not Modified\r\n\r\n"+head+"Content-Length: 6\r\n\r\nforged", stray(empty(304))),
		says("an answer behind nothing", head+"Content-Length: 0\r\n\r\n"+head+"Content-Length: 6\r\n\r\nforged", stray(empty(200))),
		says("an answer behind a trailer", head+"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n"+head+"Content-Length: 6\r\n\r\nforged", stray(whole)),
		says("an answer behind the end, from an origin that closes", head+"Connection: close\r\nContent-Length: 5\r\n\r\nhello"+head+"Content-Length: 6\r\n\r\nforged", whole),
		says("bytes behind the end", head+"Content-Length: 5\r\n\r\nhello, and more", stray(whole)),
		says("an answer behind the end", head+"Content-Length: 5\r\n\r\nhello"+head+"Content-Length: 6\r\n\r\nforged", stray(whole)),
		says("an answer behind the last chunk", head+"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"+head+"Content-Length: 6\r\n\r\nforged", stray(whole)),

		// The status line (RFC 9112, 4).
		says("no reason", "HTTP/1.1 200\r\nContent-Length: 5\r\n\r\nhello", whole),
		says("a status nobody knows", "HTTP/1.1 799 Odd\r\nContent-Length: 5\r\n\r\nhello", expect{want: 799, arrives: "GET /ok", content: "hello"}),
		says("302 is the client's to follow", "HTTP/1.1 302 Found\r\nLocation: /private/x\r\nContent-Length: 0\r\n\r\n", expect{want: 302, arrives: "GET /ok", has: "Location: /private/x"}),
		says("407 is not the gate's", "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n",
			expect{want: 407, arrives: "GET /ok", lacks: "Proxy-Authenticate"}),
		ends("no status line (HTTP/0.9)", "hello\r\n", protocol),
		says("status 99", "HTTP/1.1 099 Odd\r\nContent-Length: 0\r\n\r\n", bad),
		says("status 0", "HTTP/1.1 000 Odd\r\nContent-Length: 0\r\n\r\n", bad),
		says("status 7", "HTTP/1.1 007 Odd\r\nContent-Length: 0\r\n\r\n", bad),
		says("status of two digits", "HTTP/1.1 20 OK\r\nContent-Length: 0\r\n\r\n", protocol),
		says("status of four digits", "HTTP/1.1 2000 OK\r\nContent-Length: 0\r\n\r\n", protocol),
		says("status with a sign", "HTTP/1.1 +20 OK\r\nContent-Length: 0\r\n\r\n", protocol),
		says("status of letters", "HTTP/1.1 abc OK\r\nContent-Length: 0\r\n\r\n", protocol),
		says("another protocol", "ICY 200 OK\r\nContent-Length: 5\r\n\r\nhello", protocol),

		// Before the answer (RFC 9110, 15.2).
		{name: "103 (RFC 8297)", reply: wireReply{bytes: "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\nRobots-Gate-Id: x\r\n\r\n" + head + "Content-Length: 5\r\n\r\nhello"},
			expect:  expect{want: 200, arrives: "GET /ok", content: "hello", informs: []int{103}, lacks: "Link"},
			inHTTP2: &whole},
		old(says("103 (RFC 8297)", "HTTP/1.1 103 Early Hints\r\n\r\n"+head+"Content-Length: 5\r\n\r\nhello", whole)),
		says("100 unasked", "HTTP/1.1 100 Continue\r\n\r\n"+head+"Content-Length: 5\r\n\r\nhello", whole),
		says("101 unasked", "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", bad),
		says("101 to h2c, unasked", "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n", bad),
		says("101 to nothing, unasked", "HTTP/1.1 101 Switching Protocols\r\n\r\n", bad),
		floods("100 without end", "", "HTTP/1.1 100 Continue\r\n\r\n", bad),
		{name: "103 without end", reply: wireReply{flood: "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n"},
			expect:  expect{want: 502, arrives: "GET /ok", informs: slices.Repeat([]int{103}, 16)},
			inHTTP2: &bad},
		{name: "102 without end, each long", reply: wireReply{flood: "HTTP/1.1 102 Processing\r\nX: " + strings.Repeat("x", 100<<10) + "\r\n\r\n"},
			expect: expect{want: 502, arrives: "GET /ok", informs: slices.Repeat([]int{102}, 16)}, inHTTP2: &bad},

		// How much of a head.
		floods("fields without end", head, "X-Flood: y\r\n", bad),
		floods("a field without end", head+"X-Flood: ", "y", tooLong),
		floods("a name without end", head, "X", bad),
		floods("a fold without end", head+"X-Flood: y\r\n", " z\r\n", bad),
		floods("a status line without end", "HTTP/1.1 200 ", "K", bad),
		floods("blank lines without end", "", "\r\n", bad),
		floods("no HTTP, without end", "", "\x00\x01\x02", bad),
		floods("a trailer without end", head+"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n", "X-Flood: y\r\n", cut),
		floods("a chunk extension without end", head+"Transfer-Encoding: chunked\r\n\r\n5;", "y", cut),
		floods("bytes behind the end, without end", head+"Content-Length: 5\r\n\r\nhello", "more", stray(whole)),
		answers("a long field", "X-Long: "+strings.Repeat("y", 100<<10)+"\r\n", with("X-Kept: yes")),
		says("a head over 256 KiB", head+strings.Repeat("X-Long: "+strings.Repeat("y", 1000)+"\r\n", 300)+"Content-Length: 5\r\n\r\nhello", tooLong),

		// Fields on their way back.
		answers("Alt-Svc (RFC 7838)", "Alt-Svc: h3=\":443\"\r\nALT-SVC: h2=\"other:443\"\r\n", without("Alt-Svc")),
		answers("hop by hop (RFC 9110, 7.6.1)", "Connection: X-Hop, keep-alive\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\nProxy-Connection: keep-alive\r\n"+
			"Proxy-Authenticate: Basic\r\nProxy-Authentication-Info: x\r\nUpgrade: h2c\r\n",
			without("Connection X-Hop Keep-Alive Proxy-Connection Proxy-Authenticate Proxy-Authentication-Info Upgrade")),
		answers("TE (RFC 9110, 10.1.4)", "TE: trailers\r\n", without("Te")),
		answers("Connection names what the gate says", "Connection: Robots-Gate-Decision, Robots-Gate-Tags, Robots-Gate-Id, Proxy-Status\r\nX-Robots-Tag: noindex\r\n",
			with("Robots-Gate-Decision: allow;reason=no-match\r\nRobots-Gate-Tags: noindex;src=x-robots-tag\r\nRobots-Gate-Id: \"")),
		answers("Connection names a tag", "Connection: X-Robots-Tag\r\nX-Robots-Tag: noindex\r\n", with("Robots-Gate-Tags: noindex;src=x-robots-tag")),
		answers("Connection names Content-Length", "Connection: Content-Length, Transfer-Encoding\r\n", whole),
		answers("what only the gate says", "Robots-Gate-Decision: allow;reason=forged\r\nRobots-Gate-Tags: none\r\nrobots-gate-anything: x\r\nProxy-Status: robotsgate;error=forged\r\n",
			without("Robots-Gate-Tags Robots-Gate-Anything Proxy-Status")),
		answers("Proxy-Status of another (RFC 9209)", "Proxy-Status: cdn.example;error=dns_error, robotsgate;error=forged\r\n", with("Proxy-Status: cdn.example;error=dns_error")),
		answers("a folded field (RFC 9112, 5.2)", "X-Fold: a\r\n b\r\n\tc\r\n", with("X-Fold: a b c")),
		answers("a folded field that is a field", "X-Fold: a\r\n Alt-Svc: h3\r\n", with("X-Fold: a Alt-Svc: h3")),
		says("bare LF", "HTTP/1.1 200 OK\nX-Kept: yes\nContent-Length: 5\n\nhello", with("X-Kept: yes")),
		answers("bare CR", "X-Odd: a\rAlt-Svc: h3\r\n", bad),
		answers("no colon", "X-Odd\r\n", protocol),
		answers("a space in a name", "X Odd: a\r\n", without("X Odd")),
		answers("a name of nothing", ": a\r\n", protocol),

		// Trailers (RFC 9110, 6.5).
		says("a trailer", head+"Trailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n", with("X-Sum: 1")),
		says("a trailer that frames, routes and forges", head+"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 1\r\n"+
			"Content-Length: 9\r\nAlt-Svc: h3\r\nRobots-Gate-Tags: none\r\nProxy-Authenticate: Basic\r\nConnection: close\r\nSet-Cookie: a\r\n\r\n",
			expect{want: 200, arrives: "GET /ok", content: "hello", lacks: "Alt-Svc Robots-Gate-Tags Proxy-Authenticate Content-Length"}),
		says("a trailer that is none", head+"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nno field\r\n\r\n", cut),
	}
	runWire(t, rows)
}
