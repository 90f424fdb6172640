package origin_test

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"robotsgate/proxy"
	"robotsgate/proxy/internal/proxytest"
)

// A loginOrigin authenticates connections in three messages, as NTLM does. Its page is for those.
type loginOrigin struct {
	mu    sync.Mutex
	state map[string]string // of connections, by the address of the other end
}

func (o *loginOrigin) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	o.mu.Lock()
	defer o.mu.Unlock()
	scheme, message, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	challenge := "NTLM"
	switch {
	case message == "TYPE1":
		o.state[r.RemoteAddr], challenge = scheme, scheme+" CHALLENGE"
	case message == "TYPE3" && o.state[r.RemoteAddr] == scheme:
		o.state[r.RemoteAddr] = "in"
	}
	if o.state[r.RemoteAddr] == "in" {
		io.WriteString(rw, r.Proto+" page")
		return
	}
	rw.Header().Set("WWW-Authenticate", challenge)
	rw.WriteHeader(http.StatusUnauthorized)
}

// A connection on which a client has logged in serves that client's connection, and ends with it (RFC 4559, 6).
func TestConnectionsWithLogin(t *testing.T) {
	for _, parent := range []string{"", "http", "socks5"} {
		t.Run("parent "+parent, func(t *testing.T) {
			d := &proxy.OriginConns{}
			o := proxytest.Options{Handler: (&loginOrigin{state: map[string]string{}}).ServeHTTP, OriginConns: d, Proxy: func(o *proxy.Options) { o.Done = nil }}
			if parent != "" {
				o.Parent = proxytest.StartParent(t, parent)
			}
			g := proxytest.Start(t, o)
			if parent != "" {
				g.HTTP, g.HTTPS = "http://away.example.com", "https://away.example.com"
			}
			g.Ways(t, func(t *testing.T, alice proxytest.Way) {
				if parent == "http" && alice.Name == "http" {
					return // this parent itself shares its connections to origins
				}
				bob := g.ClientVia("http", g.Addr, alice.Name == "https HTTP/2")
				want := func(who string, client *http.Client, method, authorization string, status int) {
					t.Helper()
					var body io.Reader
					if method == http.MethodPost {
						body = strings.NewReader("a body")
					}
					var fields []string
					if authorization != "" {
						fields = []string{"Authorization", authorization}
					}
					resp, text := proxytest.Send(t, client, method, alice.Origin+"/mail", body, fields...)
					if resp.StatusCode != status || status == 200 && text != "HTTP/1.1 page" {
						t.Errorf("%s, %s with %q: got %s %q, want %d", who, method, authorization, resp.Status, text, status)
					}
				}
				for _, scheme := range []string{"NTLM", "negotiate"} {
					for _, method := range []string{http.MethodGet, http.MethodPost} {
						want("alice", alice.Client, method, "", 401)
						want("bob", bob, http.MethodGet, "", 401)
						before := d.Len()
						want("alice", alice.Client, method, scheme+" TYPE1", 401)
						want("bob", bob, http.MethodGet, "", 401) // in the middle of the login
						want("alice", alice.Client, method, scheme+" TYPE3", 200)
						want("alice", alice.Client, method, "", 200)
						want("bob", bob, http.MethodGet, "", 401)
						want("bob", bob, http.MethodGet, scheme+" TYPE3", 401)
						want("alice", alice.Client, http.MethodGet, "", 200)
						alice.Client.CloseIdleConnections()
						bob.CloseIdleConnections()
						proxytest.Eventually(t, "end of the connections with a login", func() bool { return d.Len() <= before })
						want("alice", alice.Client, method, "", 401)
					}
				}
			})
		})
	}
}
