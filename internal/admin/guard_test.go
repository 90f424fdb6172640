package admin

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// one is a listener for one connection.
type one chan net.Conn

func (o one) Accept() (net.Conn, error) {
	if c, ok := <-o; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (o one) Close() error   { return nil }
func (o one) Addr() net.Addr { return &net.TCPAddr{} }

// TestWaiting: a response that waits for an origin is sent after the server's timeouts too.
func TestWaiting(t *testing.T) {
	for name, c := range map[string]struct {
		wrap func(http.HandlerFunc) http.HandlerFunc
		want bool
	}{
		"waiting":     {waiting, true},
		"not waiting": {func(h http.HandlerFunc) http.HandlerFunc { return h }, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				waited := false
				s := &http.Server{ReadTimeout: 10 * time.Second, WriteTimeout: 15 * time.Second, Handler: c.wrap(func(w http.ResponseWriter, r *http.Request) {
					select {
					case <-time.After(time.Minute):
						waited = true
					case <-r.Context().Done():
					}
				})}
				l := make(one)
				go s.Serve(l)
				client, server := net.Pipe()
				l <- server
				go io.WriteString(client, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
				resp, err := http.ReadResponse(bufio.NewReader(client), nil)
				if got := err == nil && resp.StatusCode == 200 && waited; got != c.want {
					t.Errorf("answered after a minute: %v (%v), want %v", got, err, c.want)
				}
				client.Close()
				close(l)
				s.Close()
			})
		})
	}
}

// TestNotTheProxy: a client that takes the listener for the proxy learns where that is.
func TestNotTheProxy(t *testing.T) {
	h := listener(t, &origin{})
	for _, path := range []string{"/", "/page"} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://shop.example"+path, nil))
		if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "its proxy is http://192.0.2.1:9309") {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}
