package client_test

import (
	"bufio"
	"io"
	"net/http"
	"testing"

	"robotsgate/internal/record"
	"robotsgate/policy"
	"robotsgate/policy/glob"
	"robotsgate/proxy/internal/proxytest"
)

// A connection counts for the crawler that sends requests on it, until it closes. Other
// crawlers are not affected by the limit.
func TestMaxConnectionsOfCrawler(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{Engine: func(c *policy.Config) {
		c.Crawlers.Known = []*policy.Crawler{{Name: "small", UserAgents: []glob.Glob{glob.Text("small*")}, Mode: policy.Enforce, DenyStatus: 403, MaxConnections: 1}}
	}})
	request := func(agent string) string {
		return "GET " + g.HTTP + "/ HTTP/1.1\r\nHost: x\r\nUser-Agent: " + agent + "\r\n\r\n"
	}
	first := g.Dial()
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
	if got := proxytest.StatusOf(g.Raw(request("small/2"))); got != "503" { // and closed, so that raw returns
		t.Errorf("second connection: got %s, want 503", got)
	}
	for _, want := range []record.Refusal{"", "", record.ByLimit} {
		if x := g.Next(t); x.Refused != want {
			t.Errorf("the record is refused by %q, want %q", x.Refused, want)
		}
	}
	conn := g.Tunnel(proxytest.Host(g.HTTP)) // a tunnel's requests count too
	io.WriteString(conn, "GET / HTTP/1.1\r\nHost: "+proxytest.Host(g.HTTP)+"\r\nUser-Agent: small/3\r\n\r\n")
	if answer, _ := io.ReadAll(conn); proxytest.StatusOf(string(answer)) != "503" {
		t.Errorf("tunnel: got %q, want 503", answer)
	}
	conn.Close()
	if got := proxytest.StatusOf(g.Raw("GET " + g.HTTP + "/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")); got != "200" {
		t.Errorf("another crawler: got %s, want 200", got)
	}
	first.Close()
	proxytest.Eventually(t, "the gate has seen it close", func() bool {
		return g.Proxy.Connections().Open == 0
	})
	if got := proxytest.StatusOf(g.Raw("GET " + g.HTTP + "/ HTTP/1.1\r\nHost: x\r\nUser-Agent: small/4\r\nConnection: close\r\n\r\n")); got != "200" {
		t.Errorf("after the first has closed: got %s, want 200", got)
	}
}
