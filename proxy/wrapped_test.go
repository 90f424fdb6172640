package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A signing Upstream adds a field to every request that it sends.
type signing struct{ Upstream }

func (s signing) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Signature", "of "+r.Method+" "+r.URL.Path)
	return s.Upstream.RoundTrip(r)
}

// An Upstream that wraps another sees every request: those of clients, of any kind, and the fetches of robots.txt.
func TestWrappedUpstream(t *testing.T) {
	withEither(t, func(t *testing.T, onlyNetHTTP bool) {
		w := newWorld(t, options{
			egress:   func(e *Egress) { e.OnlyNetHTTP = onlyNetHTTP },
			upstream: func(u Upstream) Upstream { return signing{u} },
			handler: func(rw http.ResponseWriter, r *http.Request) {
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
		w.ways(t, func(t *testing.T, v way) {
			v.get(t, "/get")
			if _, body := send(t, v.client, http.MethodPost, v.origin+"/upload", strings.NewReader("a body")); body != "a body" {
				t.Errorf("the upload came back as %q", body)
			}
		})
		conn := w.dial()
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(patience))
		fmt.Fprintf(conn, "GET %s/socket HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", w.http)
		r := bufio.NewReader(conn)
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		wantStatus(t, resp, http.StatusSwitchingProtocols)
		io.WriteString(conn, "hi\n")
		if rest, err := io.ReadAll(r); string(rest) != "echo hi\n" || err != nil {
			t.Errorf("the WebSocket got %q, %v", rest, err)
		}

		w.mu.Lock()
		defer w.mu.Unlock()
		seen := map[string]int{}
		for _, r := range w.seen {
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
	})
}
