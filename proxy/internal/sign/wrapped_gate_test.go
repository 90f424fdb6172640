package sign_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"robotsgate/proxy"
	"robotsgate/proxy/internal/proxytest"
)

// A signing Upstream adds a field to every request that it sends.
type signing struct{ proxy.Upstream }

func (s signing) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Signature", "of "+r.Method+" "+r.URL.Path)
	return s.Upstream.RoundTrip(r)
}

// An Upstream that wraps another sees every request: those of clients, of any kind, and the fetches of robots.txt.
func TestWrappedUpstream(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{
		Upstream: func(u proxy.Upstream) proxy.Upstream { return signing{u} },
		Handler: func(rw http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Upgrade") == "" {
				io.Copy(rw, r.Body)
				return
			}
			conn, buf, err := http.NewResponseController(rw).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
			line, _ := buf.ReadString('\n')
			io.WriteString(conn, "echo "+line)
		},
	})
	g.Ways(t, func(t *testing.T, v proxytest.Way) {
		v.Get(t, "/get")
		if _, body := proxytest.Send(t, v.Client, http.MethodPost, v.Origin+"/upload", strings.NewReader("a body")); body != "a body" {
			t.Errorf("the upload came back as %q", body)
		}
	})
	conn := g.Dial()
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(proxytest.Patience))
	fmt.Fprintf(conn, "GET %s/socket HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", g.HTTP)
	r := bufio.NewReader(conn)
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	proxytest.WantStatus(t, resp, http.StatusSwitchingProtocols)
	io.WriteString(conn, "hi\n")
	if rest, err := io.ReadAll(r); string(rest) != "echo hi\n" || err != nil {
		t.Errorf("the WebSocket got %q, %v", rest, err)
	}

	seen := map[string]int{}
	for _, r := range g.Requests() {
		seen[r.URL.Path]++
		if got, want := r.Header.Get("Signature"), "of "+r.Method+" "+r.URL.Path; got != want {
			t.Errorf("%s %s arrived with the signature %q", r.Method, r.URL, got)
		}
	}
	for path, want := range map[string]int{"/robots.txt": 2, "/get": 3, "/upload": 3, "/socket": 1} {
		if seen[path] != want {
			t.Errorf("%d requests for %s arrived, want %d", seen[path], path, want)
		}
	}
}
