package gate

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"robotsgate/internal/record"
	"robotsgate/internal/requestlog"
	"robotsgate/policy/snapshot"
)

// serveGate runs a gate until the returned function is called. It logs all requests to log, and to the file of the audit
// log. More is added to its configuration.
func serveGate(t *testing.T, log io.Writer, redact bool, more string) (g *Gate, file string, stop func()) {
	t.Helper()
	dir := t.TempDir()
	file = filepath.Join(dir, "audit.jsonl")
	text := fmt.Sprintf("listen: 127.0.0.1:0\nadmin: {listen: 127.0.0.1:0}\ndata_dir: %q\nlimits: {shutdown_delay: 0s}\nlog: {level: debug, audit: %q, redact_query: %v}\n", dir, file, redact) + more
	c, err := ReadConfig("gate.yaml", strings.NewReader(text), noEnv)
	if err != nil {
		t.Fatal(err)
	}
	if g, err = New(c, Options{Out: io.Discard, Err: log, Requests: func(*Config) requestlog.Requests { return requestlog.All }}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- g.Run(ctx) }()
	return g, file, func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// send sends a request to the gate as it stands, and returns the status of the answer.
func send(t *testing.T, g *Gate, head string) int {
	t.Helper()
	conn, err := net.Dial("tcp", g.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, head+"\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode
}

// sendHTTP2 sends a request to the gate over HTTP/2 in a tunnel to a.test, with the authority as it stands, and returns
// the status of the answer.
func sendHTTP2(t *testing.T, g *Gate, authority string) (status string) {
	t.Helper()
	conn, err := net.Dial("tcp", g.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	io.WriteString(conn, "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n")
	if resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: http.MethodConnect}); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("CONNECT: got %v, %v", resp, err)
	}
	inner := tls.Client(conn, &tls.Config{InsecureSkipVerify: true, ServerName: "a.test", NextProtos: []string{"h2"}})
	io.WriteString(inner, http2.ClientPreface)
	f := http2.NewFramer(inner, inner)
	f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	f.WriteSettings()
	var block bytes.Buffer
	fields := hpack.NewEncoder(&block)
	for _, field := range []hpack.HeaderField{{Name: ":method", Value: "GET"}, {Name: ":scheme", Value: "https"}, {Name: ":authority", Value: authority}, {Name: ":path", Value: "/?k=SECRET"}} {
		fields.WriteField(field)
	}
	f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: true})
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			t.Fatalf(":authority %s: %v", authority, err)
		}
		if head, ok := frame.(*http2.MetaHeadersFrame); ok {
			return head.PseudoValue("status")
		}
	}
}

// adminPages returns pages of the admin listener, by path.
func adminPages(t *testing.T, g *Gate, paths ...string) map[string]string {
	t.Helper()
	pages := map[string]string{}
	for _, path := range paths {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Host = "localhost"
		(*g.pages.Load()).ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			t.Fatalf("%s: status %d: %s", path, w.Code, w.Body)
		}
		pages[path] = w.Body.String()
	}
	return pages
}

// TestJunkURLs: requests with URLs as long as they may be can't flush the entries of others out of the audit log,
// nor fill the log.
func TestJunkURLs(t *testing.T) {
	var log bytes.Buffer
	g, file, stop := serveGate(t, &log, false, "")
	const n = 600
	digests := map[string]bool{}
	for i := range n {
		url := fmt.Sprintf("http://a.test/%s%d", strings.Repeat("x", 60_000), i)
		digests[snapshot.Digest(url)] = true
		if got := send(t, g, "GET "+url+" HTTP/1.1\r\nHost: a.test"); got != http.StatusRequestURITooLong {
			t.Fatalf("got the status %d", got)
		}
	}
	stop()
	if got := g.overview.State().Refusals[0]; !got.Cut || !digests[got.Digest] {
		t.Errorf("the status page has %+v", got)
	}
	records, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if most := n * 2 * record.MaxURL; len(records) > most || log.Len() > most {
		t.Errorf("the audit log has %d bytes, the log %d, want %d at most", len(records), log.Len(), most)
	}
}

// TestRedactedQueries: with log.redact_query no value of a query is on the status page, in the API or in the logs, of
// requests that are refused by their address and of malformed ones.
func TestRedactedQueries(t *testing.T) {
	var log bytes.Buffer
	g, file, stop := serveGate(t, &log, true, "")
	for _, line := range []string{
		"GET http://192.0.2.1/x?k=SECRET&SECRET",
		"GET http://a.test/%zz?k=SECRET",
		"GET http://192.0.2.1/x?k=%zz&k=SECRET",
		"GET http://a.test/x?k=SECRET#fragment",
		"GET http://a.test/x#k=SECRET",
		`GET http://a.test/a\b?k=SECRET`,
		"GET http://a.test:99999/x?k=SECRET",
		"GET http://a.test:99999?k=SECRET",
		"GET http://a..test?k=SECRET",
		"GET http://a.test/?k=SECRET&" + strings.Repeat("SECRET=SECRET&", 2000),
		"TRACE http://a.test/?k=SECRET",
		"CONNECT a.test?k=SECRET:443",
	} {
		if got := send(t, g, line+" HTTP/1.1\r\nHost: a.test"); got < 400 {
			t.Errorf("%.100s: got the status %d", line, got)
		}
	}
	if got := sendHTTP2(t, g, "a.test?k=SECRET"); got != "400" {
		t.Errorf("HTTP/2 with a query in :authority: got the status %s", got)
	}
	stop()       // a request is recorded after its answer
	const n = 12 // net/http itself answers the request with a bad escape in its path, without a record
	if got := len(g.overview.State().Refusals); got != n {
		t.Errorf("%d refusals are kept, want %d", got, n)
	}
	pages := adminPages(t, g, "/", "/api/overview")
	records, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pages["the audit log"], pages["the log"] = string(records), log.String()
	for name, text := range pages {
		text = strings.ReplaceAll(text, "SECRET=*", "") // a name
		if !strings.Contains(text, "k=*") {
			t.Errorf("%s: no query of the requests is there", name)
		}
		if i := strings.Index(text, "SECRET"); i >= 0 {
			t.Errorf("%s: …%s", name, text[max(0, i-200):i+10])
		}
	}
}

// TestRedactedErrors: an origin that repeats the query in a malformed response does not bring it to the logs.
func TestRedactedErrors(t *testing.T) {
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			http.NotFound(w, r)
			return
		}
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		field := map[string]string{"/length": "Content-Length: ", "/coding": "Transfer-Encoding: ", "/field": "A\x00: "}[r.URL.Path]
		io.WriteString(conn, "HTTP/1.1 200 OK\r\n"+field+r.RequestURI+"\r\n\r\n")
	}))
	t.Cleanup(origin.Close)
	var log bytes.Buffer
	g, file, stop := serveGate(t, &log, true, "egress: {allow_private: [127.0.0.0/8]}\n")
	for _, path := range []string{"/length", "/coding", "/field"} {
		if got := send(t, g, "GET "+origin.URL+path+"?k=SECRET HTTP/1.1\r\nHost: a.test"); got != http.StatusBadGateway {
			t.Errorf("%s: got the status %d, want 502", path, got)
		}
	}
	pages := adminPages(t, g, "/", "/api/overview")
	stop()
	records, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pages["the audit log"], pages["the log"] = string(records), log.String()
	for name, text := range pages {
		if i := strings.Index(text, "SECRET"); i >= 0 {
			t.Errorf("%s: …%s", name, text[max(0, i-200):i+10])
		}
	}
	if want := `"error":"the answer cannot be read: bad Content-Length \"*\""`; !strings.Contains(string(records), want) {
		t.Errorf("the audit log has no %s:\n%s", want, records)
	}
}
