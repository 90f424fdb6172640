package proxy

import (
	"bufio"
	"io"
	"net/http"
	"testing"

	"robotsgate/policy"
	"robotsgate/policy/glob"
)

// A connection counts for the crawler that sends requests on it, until it closes. Other
// crawlers are not affected by the limit.
func TestMaxConnectionsOfCrawler(t *testing.T) {
	w := newWorld(t, options{engine: func(c *policy.Config) {
		c.Crawlers.Known = []*policy.Crawler{{Name: "small", UserAgents: []glob.Glob{glob.Text("small*")}, Mode: policy.Enforce, DenyStatus: 403, MaxConnections: 1}}
	}})
	request := func(agent string) string {
		return "GET " + w.http + "/ HTTP/1.1\r\nHost: x\r\nUser-Agent: " + agent + "\r\n\r\n"
	}
	first := w.dial()
	ask := func() int {
		io.WriteString(first, request("small/1"))
		resp, err := http.ReadResponse(bufio.NewReader(first), nil)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		return resp.StatusCode
	}
	for range 2 { // the same connection counts once
		if got := ask(); got != 200 {
			t.Fatalf("first connection: got %d, want 200", got)
		}
	}
	if got := statusOf(w.raw(request("small/2"))); got != "503" { // and closed, so that raw returns
		t.Errorf("second connection: got %s, want 503", got)
	}
	for _, want := range []Refusal{"", "", ByLimit} {
		if x := w.next(t); x.Refused != want {
			t.Errorf("the record is refused by %q, want %q", x.Refused, want)
		}
	}
	conn := w.tunnel(host(w.http)) // a tunnel's requests count too
	io.WriteString(conn, "GET / HTTP/1.1\r\nHost: "+host(w.http)+"\r\nUser-Agent: small/3\r\n\r\n")
	if answer, _ := io.ReadAll(conn); statusOf(string(answer)) != "503" {
		t.Errorf("tunnel: got %q, want 503", answer)
	}
	conn.Close()
	if got := statusOf(w.raw("GET " + w.http + "/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")); got != "200" {
		t.Errorf("another crawler: got %s, want 200", got)
	}
	first.Close()
	eventually(t, "the gate has seen it close", func() bool {
		return w.gate.Connections().Open == 0
	})
	if got := statusOf(w.raw("GET " + w.http + "/ HTTP/1.1\r\nHost: x\r\nUser-Agent: small/4\r\nConnection: close\r\n\r\n")); got != "200" {
		t.Errorf("after the first has closed: got %s, want 200", got)
	}
}
