package gate

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"robotsgate/internal/audit"
	"robotsgate/internal/config"
	"robotsgate/policy"
)

// serveGate runs a gate with lines of a configuration until the returned function is called. It logs all requests to
// log, and to the file of the audit log.
func serveGate(t *testing.T, log io.Writer, text string) (g *Gate, file string, stop func()) {
	t.Helper()
	dir := t.TempDir()
	file = filepath.Join(dir, "audit.jsonl")
	text = fmt.Sprintf("listen: 127.0.0.1:0\nadmin: {listen: 127.0.0.1:0}\ndata_dir: %q\nlimits: {shutdown_delay: 0s}\nlog: {audit: %q, requests: all, %s}\n", dir, file, text)
	c, err := config.Read("gate.yaml", strings.NewReader(text), func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	g, err = New(c, Options{Out: io.Discard, Err: log, Requests: func(*config.Config) config.Requests { return config.AllRequests }})
	if err != nil {
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

// TestJunkURLs: requests with URLs as long as they may be can't flush the records of others out of the audit log,
// nor fill the log. Each record has the beginning of its URL and the SHA-256 of all of it.
func TestJunkURLs(t *testing.T) {
	var log bytes.Buffer
	g, file, stop := serveGate(t, &log, "")
	const n = 600
	digests := map[string]bool{}
	for i := range n {
		url := fmt.Sprintf("http://a.test/%s%d", strings.Repeat("x", 60_000), i)
		digests[policy.Digest(url)] = true
		if got := send(t, g, "GET "+url+" HTTP/1.1\r\nHost: a.test"); got != http.StatusRequestURITooLong {
			t.Fatalf("got the status %d", got)
		}
	}
	if got := g.overview.State().Refusals[0]; !got.Cut || !digests[got.Digest] {
		t.Errorf("the status page has %+v", got)
	}
	stop()
	records, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if most := n * audit.MaxRecord; len(records) > most || log.Len() > most {
		t.Errorf("the audit log has %d bytes, the log %d, want %d at most", len(records), log.Len(), most)
	}
	for digest := range digests {
		if bytes.Count(records, []byte(`"url_sha256":"`+digest+`"`)) != 1 || bytes.Count(log.Bytes(), []byte("url_sha256="+digest)) != 1 {
			t.Fatalf("no line names the URL with the SHA-256 %s", digest)
		}
	}
}
