package wire

import (
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"robotsgate/internal/gatetest"
)

// However a client frames a request, an origin receives one that is framed
// afresh, or none.
func TestWireFraming(t *testing.T) { runWire(t, framingRows(t)) }

func framingRows(t *testing.T) []wireRow {
	rows := readRows(t, "framing-*.txtar")
	closed := expect{want: 400, closes: true}
	orNone := &expect{want: 400, orNone: true}
	// A body that is found wrong when its request is on the way already.
	late := expect{want: 400, closes: true, half: true}
	rows = append(rows, wireRow{
		name: "long extensions of small chunks", method: "POST", fields: "Transfer-Encoding: chunked\r\n",
		body: strings.Repeat("1;"+strings.Repeat("x", 3000)+"\r\na\r\n", 10) + "0\r\n\r\n", noHTTP2: noChunks, expect: late,
	})
	for _, value := range malformedValues(t, "length") {
		rows = append(rows, wireRow{name: "Content-Length: " + value, method: "POST", fields: "Content-Length: " + value + "\r\n", body: "abc", expect: closed, inHTTP2: orNone})
	}
	for _, value := range malformedValues(t, "coding") {
		rows = append(rows, wireRow{name: "Transfer-Encoding: " + value, method: "POST", fields: "Transfer-Encoding: " + value + "\r\n", body: "0\r\n\r\n", noHTTP2: noChunks,
			expect: expect{want: 501, closes: true}}) // RFC 9112, 6.1
	}
	for _, value := range malformedValues(t, "coding with a control") {
		rows = append(rows, wireRow{name: "Transfer-Encoding: " + value, method: "POST", fields: "Transfer-Encoding: " + value + "\r\n", body: "0\r\n\r\n", noHTTP2: noChunks, expect: closed})
	}
	for _, body := range malformedValues(t, "chunks") {
		rows = append(rows,
			wireRow{name: "chunks: " + body, method: "POST", fields: "Transfer-Encoding: chunked\r\n", body: body, noHTTP2: noChunks, expect: late},
			wireRow{name: "denied, chunks: " + body, method: "POST", path: "/private/x", fields: "Transfer-Encoding: chunked\r\n", body: body, noHTTP2: noChunks, expect: expect{want: 403, closes: true}})
	}
	return rows
}

// malformedValues returns the lines of a file in testdata/malformed.txtar.
func malformedValues(t *testing.T, name string) []string {
	ar, err := txtar.ParseFile("testdata/malformed.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range ar.Files {
		if f.Name == name && len(f.Data) > 0 {
			return gatetest.Unquote(t, string(f.Data))
		}
	}
	t.Fatalf("no values in %q", name)
	return nil
}
