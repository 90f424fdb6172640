package proxy

import (
	"strings"
	"testing"
)

// However a client frames a request, an origin receives one that is framed
// afresh, or none.
func TestWireFraming(t *testing.T) { runWire(t, framingRows()) }

func framingRows() []wireRow {
	const (
		clean   = "POST /ok\r\nContent-Length: 3\r\n\r\nabc"
		chunked = "POST /ok\r\nTransfer-Encoding: chunked\r\n\r\nabc"
		frames  = "HTTP/2 frames it itself"
	)
	whole := expect{want: 200, arrives: clean, content: "hello"}
	// Behind chunks the connection ends: net/http does not tell whether there was a
	// length beside them, and then it must (RFC 9112, 6.1).
	streamed := expect{want: 200, arrives: chunked, content: "hello", closes: true}
	closed := expect{want: 400, closes: true}
	old := expect{want: 200, arrives: "POST /ok\r\nContent-Length: 0\r\n\r\n", closes: true}
	malformed := &expect{want: 400, orNone: true}
	// A body that is found wrong when its request is on the way already.
	late := expect{want: 400, closes: true, half: true}
	rows := []wireRow{
		{name: "Content-Length", method: "POST", fields: "Content-Length: 3\r\n", body: "abc", expect: whole},
		{name: "chunks", method: "POST", fields: "Transfer-Encoding: chunked\r\n", body: "3\r\nabc\r\n0\r\n\r\n", noHTTP2: noChunks, expect: streamed},
		{name: "no length", method: "POST", h2: ":method: POST\n:scheme: https\n:authority: ORIGIN\n:path: /ok", body: "abc", noClear: "no body then", noTunnel: "no body then", expect: streamed},
		{name: "no body", method: "POST", expect: expect{want: 200, arrives: "POST /ok\r\nContent-Length: 0\r\n\r\n"}},
		{name: "body of a GET", fields: "Content-Length: 3\r\n", body: "abc", expect: expect{want: 200, arrives: "GET /ok\r\nContent-Length: 3\r\n\r\nabc"}},
		{name: "body of a GET in chunks", fields: "Transfer-Encoding: chunked\r\n", body: "3\r\nabc\r\n0\r\n\r\n", noHTTP2: noChunks, expect: expect{want: 200, arrives: "GET /ok\r\nTransfer-Encoding: chunked\r\n\r\nabc", closes: true}},
		{name: "body that is a request", method: "POST", body: "GET /private/x HTTP/1.1\r\nHost: a\r\n\r\n", expect: expect{want: 200, arrives: "POST /ok\r\nContent-Length: 36\r\n\r\nGET /private/x HTTP/1.1\r\nHost: a\r\n\r\n"}},
		{name: "denied", method: "POST", path: "/private/x", body: "abc", expect: expect{want: 403}},
		{name: "denied, in chunks", method: "POST", path: "/private/x", fields: "Transfer-Encoding: chunked\r\n", body: "3\r\nabc\r\n0\r\n\r\n", noHTTP2: noChunks, expect: expect{want: 403, closes: true}},

		// Both (RFC 9112, 6.1): one of them may be ignored, but the connection ends.
		{name: "chunks and Content-Length", method: "POST", fields: "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", body: "3\r\nabc\r\n0\r\n\r\n", noHTTP2: noChunks,
			expect: expect{want: 200, arrives: chunked, closes: true}},
		{name: "chunks and Content-Length, the other way", method: "POST", fields: "Transfer-Encoding: chunked\r\nContent-Length: 13\r\n", body: "3\r\nabc\r\n0\r\n\r\n", noHTTP2: noChunks,
			expect: expect{want: 200, arrives: chunked, closes: true}},
		{name: "chunks and Content-Length, which hides a request", method: "POST", fields: "Transfer-Encoding: chunked\r\nContent-Length: 6\r\n", body: "0\r\n\r\nG", noHTTP2: noChunks,
			expect: expect{want: 200, arrives: "POST /ok\r\nTransfer-Encoding: chunked\r\n\r\n", closes: true}},
		{name: "chunks and a bad Content-Length", method: "POST", fields: "Transfer-Encoding: chunked\r\nContent-Length: x\r\n", body: "0\r\n\r\n", noHTTP2: noChunks, expect: closed},
		{name: "chunks and Content-Length, denied", method: "POST", path: "/private/x", fields: "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", body: "3\r\nabc\r\n0\r\n\r\n", noHTTP2: noChunks,
			expect: expect{want: 403, closes: true}},

		// More than one length (RFC 9112, 6.3).
		{name: "the same length twice", method: "POST", fields: "Content-Length: 3\r\nContent-Length: 3\r\n", body: "abc", expect: whole},
		{name: "two lengths", method: "POST", fields: "Content-Length: 3\r\nContent-Length: 4\r\n", body: "abcd", expect: closed, inHTTP2: malformed},
		{name: "two lengths, the greater first", method: "POST", fields: "Content-Length: 4\r\nContent-Length: 3\r\n", body: "abcd", expect: closed, inHTTP2: malformed},
		{name: "a list of lengths", method: "POST", fields: "Content-Length: 3, 3\r\n", body: "abc", expect: closed, inHTTP2: malformed},

		// HTTP/2 knows the length itself (RFC 9113, 8.1.1).
		{name: "longer than its Content-Length", method: "POST", fields: "Content-Length: 2\r\n", body: "abc", noClear: frames, noTunnel: frames, inHTTP2: &expect{want: broken, half: true}},
		{name: "shorter than its Content-Length", method: "POST", fields: "Content-Length: 4\r\n", body: "abc", noClear: frames, noTunnel: frames, inHTTP2: &expect{want: 400, orNone: true, half: true}},
		{name: "Content-Length without a body", method: "POST", fields: "Content-Length: 4\r\n", noClear: frames, noTunnel: frames, inHTTP2: malformed},
		{name: "Transfer-Encoding in HTTP/2 (RFC 9113, 8.2.2)", method: "POST", fields: "Transfer-Encoding: chunked\r\n", body: "3\r\nabc\r\n0\r\n\r\n", noClear: frames, noTunnel: frames, expect: expect{want: 400}},

		{name: "a name with an underscore", method: "POST", fields: "Transfer_Encoding: chunked\r\nContent_Length: 0\r\nContent-Length: 3\r\n", body: "abc",
			expect: whole},
		{name: "a trailer (RFC 9112, 7.1.2)", method: "POST", fields: "Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n", body: "3\r\nabc\r\n0\r\nX-Sum: 1\r\n\r\n", noHTTP2: noChunks, expect: streamed},
		{name: "a trailer that frames and routes", method: "POST", fields: "Transfer-Encoding: chunked\r\n", body: "3\r\nabc\r\n0\r\nContent-Length: 9\r\nHost: other.example\r\nX-Original-URL: /private/\r\nProxy-Authorization: Basic x\r\n\r\n", noHTTP2: noChunks, expect: streamed},
		{name: "a trailer with a bare LF", method: "POST", fields: "Transfer-Encoding: chunked\r\n", body: "3\r\nabc\r\n0\r\nX: y\n\r\n", noHTTP2: noChunks, expect: streamed},
		{name: "a trailer with a space before its colon", method: "POST", fields: "Transfer-Encoding: chunked\r\n", body: "3\r\nabc\r\n0\r\nX : y\r\n\r\n", noHTTP2: noChunks, expect: streamed},
		{name: "a trailer that is declared and frames", method: "POST", fields: "Transfer-Encoding: chunked\r\nTrailer: Content-Length\r\n", body: "0\r\n\r\n", noHTTP2: noChunks, expect: closed},
		{name: "a chunk extension (RFC 9112, 7.1.1)", method: "POST", fields: "Transfer-Encoding: chunked\r\n", body: "3;a=b;c=\"d;e\";f\r\nabc\r\n0;g\r\n\r\n", noHTTP2: noChunks, expect: streamed},
		{name: "leading zeros of a chunk", method: "POST", fields: "Transfer-Encoding: chunked\r\n", body: "0000003\r\nabc\r\n000\r\n\r\n", noHTTP2: noChunks, expect: streamed},
		{name: "a chunk in capitals", method: "POST", fields: "Transfer-Encoding: CHUNKED\r\n", body: "A\r\n0123456789\r\n0\r\n\r\n", noHTTP2: noChunks,
			expect: expect{want: 200, arrives: "POST /ok\r\nTransfer-Encoding: chunked\r\n\r\n0123456789", closes: true}},
		{name: "white space around the coding", method: "POST", fields: "Transfer-Encoding: \t chunked \t\r\n", body: "3\r\nabc\r\n0\r\n\r\n", noHTTP2: noChunks, expect: streamed},
		{name: "long extensions of small chunks", method: "POST", fields: "Transfer-Encoding: chunked\r\n", body: strings.Repeat("1;"+strings.Repeat("x", 3000)+"\r\na\r\n", 10) + "0\r\n\r\n", noHTTP2: noChunks, expect: late},

		// In HTTP/1.0 there are no chunks (RFC 9112, 6.1): whatever they are taken for,
		// the connection ends.
		{name: "chunks in HTTP/1.0", method: "POST", version: "HTTP/1.0", fields: "Transfer-Encoding: chunked\r\n", body: "3\r\nabc\r\n0\r\n\r\n", noHTTP2: noVersion, expect: old},
		{name: "chunks in HTTP/1.0, kept alive", method: "POST", version: "HTTP/1.0", fields: "Transfer-Encoding: chunked\r\nConnection: keep-alive\r\n", body: "3\r\nabc\r\n0\r\n\r\n", noHTTP2: noVersion, expect: old},
		{name: "chunks and Content-Length in HTTP/1.0, kept alive", method: "POST", version: "HTTP/1.0", fields: "Transfer-Encoding: chunked\r\nContent-Length: 3\r\nConnection: keep-alive\r\n", body: "abc", noHTTP2: noVersion, expect: expect{want: 200, arrives: clean, closes: true}},
		{name: "Content-Length in HTTP/1.0", method: "POST", version: "HTTP/1.0", body: "abc", noHTTP2: noVersion, expect: expect{want: 200, arrives: clean, closes: true}},
	}
	for _, value := range []string{"-1", "+3", "-0", "0x3", "3.0", "3e0", "3 3", "3;", "x", "\"3\"", "03 x", "99999999999999999999", "18446744073709551619", "\xef\xbc\x93"} {
		rows = append(rows, wireRow{name: "Content-Length: " + value, method: "POST", fields: "Content-Length: " + value + "\r\n", body: "abc", expect: closed, inHTTP2: malformed})
	}
	for _, value := range []string{"identity", "gzip", "xchunked", "chunkedx", "chunked, identity", "identity, chunked", "gzip, chunked", "chunked, chunked", "chunked,", ", chunked", "\"chunked\"", "chunked;q=1", "chun ked", "x\r\nTransfer-Encoding: chunked", "chunked\r\nTransfer-Encoding: chunked", "chunked\r\nTransfer-Encoding: identity", ""} {
		rows = append(rows, wireRow{name: "Transfer-Encoding: " + value, method: "POST", fields: "Transfer-Encoding: " + value + "\r\n", body: "0\r\n\r\n", noHTTP2: noChunks,
			expect: expect{want: 501, closes: true}}) // RFC 9112, 6.1
	}
	for _, value := range []string{"\x0bchunked", "chunked\x0b", "chunked\x00", "\x7fchunked"} {
		rows = append(rows, wireRow{name: "Transfer-Encoding: " + value, method: "POST", fields: "Transfer-Encoding: " + value + "\r\n", body: "0\r\n\r\n", noHTTP2: noChunks, expect: closed})
	}
	for _, body := range []string{
		"zz\r\nabc\r\n0\r\n\r\n", "+3\r\nabc\r\n0\r\n\r\n", "-3\r\nabc\r\n0\r\n\r\n", "0x3\r\nabc\r\n0\r\n\r\n", " 3\r\nabc\r\n0\r\n\r\n", "3_\r\nabc\r\n0\r\n\r\n", "\r\n3\r\nabc\r\n0\r\n\r\n", "3\x00\r\nabc\r\n0\r\n\r\n",
		"3\nabc\r\n0\r\n\r\n", "3;a\nabc\r\n0\r\n\r\n", "3\rabc\r\n0\r\n\r\n", "3\r\nabc\n0\r\n\r\n", "3\r\nabc0\r\n\r\n", "3\r\nabcd\r\n0\r\n\r\n", "3\r\nab\r\n0\r\n\r\n", "3\r\nabc\r\r\n0\r\n\r\n", "3\r\nabc\r\n0\n\r\n",
		"10000000000000003\r\nabc\r\n0\r\n\r\n", "fffffffffffffffff\r\nabc\r\n0\r\n\r\n", "00000000000000000003\r\nabc\r\n0\r\n\r\n", ";a\r\n\r\n", "3\r\nabc\r\n0\r\nno field\r\n\r\n", "3\r\nabc\r\n0\r\n:y\r\n\r\n",
	} {
		rows = append(rows,
			wireRow{name: "chunks: " + body, method: "POST", fields: "Transfer-Encoding: chunked\r\n", body: body, noHTTP2: noChunks, expect: late},
			wireRow{name: "denied, chunks: " + body, method: "POST", path: "/private/x", fields: "Transfer-Encoding: chunked\r\n", body: body, noHTTP2: noChunks, expect: expect{want: 403, closes: true}})
	}
	return rows
}
