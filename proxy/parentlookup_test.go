package proxy

import (
	"crypto/tls"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"robotsgate/policy"
	"robotsgate/policy/glob"
	"robotsgate/proxy/internal/client"
)

// overRedirect sends a request over a connection to a port that was redirected, in TLS if there is a server name, and
// returns the status of the answer. If the gate ends the handshake by denying access, the status is alert.
func (w *world) overRedirect(port, sni, request string) (status string) {
	w.t.Helper()
	conn := dialed(w.t, w.redirect(w.t, port))
	if sni == "" {
		io.WriteString(conn, request)
		return statusOf(readAnswer(w.t, conn, request))
	}
	secure := tls.Client(conn, &tls.Config{RootCAs: w.roots, ServerName: sni})
	if err := secure.Handshake(); err != nil && strings.HasSuffix(err.Error(), "tls: access denied") {
		return "alert"
	} else if err != nil {
		w.t.Fatal(err)
	}
	io.WriteString(secure, request)
	return statusOf(readAnswer(w.t, secure, request))
}

// A host that an override denies is not looked up, on any way to the gate, also with a parent proxy, whose gate looks up
// names to guard them. Otherwise a client could send data out in the name.
func TestDeniedHostIsNotLookedUp(t *testing.T) {
	for _, parent := range []string{"", "http", "https", "socks5"} {
		for _, c := range []struct {
			name     string
			sent     func(w *world) (status string)
			lookedUp bool
		}{
			{"a request", func(w *world) string {
				return statusOf(w.raw("GET http://secret.example.com/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"))
			}, false},
			{"a request that no override denies", func(w *world) string {
				return statusOf(w.raw("GET http://other.example.com/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"))
			}, true},
			{"inside CONNECT", func(w *world) string {
				return statusOf(w.secure("secret.example.com:443", "secret.example.com", "GET / HTTP/1.1\r\nHost: secret.example.com\r\nConnection: close\r\n\r\n"))
			}, false},
			{"a tunnel to a passthrough host", func(w *world) string {
				return statusOf(w.raw("CONNECT secret.passed.example.com:443 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"))
			}, false},
			{"redirected, in clear", func(w *world) string {
				return w.overRedirect("80", "", "GET / HTTP/1.1\r\nHost: secret.example.com\r\nConnection: close\r\n\r\n")
			}, false},
			{"redirected, in TLS", func(w *world) string {
				return w.overRedirect("443", "secret.example.com", "GET / HTTP/1.1\r\nHost: secret.example.com\r\nConnection: close\r\n\r\n")
			}, false},
			{"redirected, passthrough", func(w *world) string {
				return w.overRedirect("443", "secret.passed.example.com", "")
			}, false},
			{"SOCKS", func(w *world) string {
				conn := dialed(w.t, w.addr)
				io.WriteString(conn, "\x05\x01\x00"+socksTo("secret.example.com", "80"))
				received(w.t, conn, "\x05\x00"+socksReply(client.SocksNotAllowed))
				return "403"
			}, false},
		} {
			t.Run(parent+" "+c.name, func(t *testing.T) {
				o := options{
					engine: func(e *policy.Config) {
						e.Overrides = []policy.Override{{Hosts: []glob.Glob{mustHost(t, "secret.*")}, Action: policy.Deny, Reason: "not for us"}}
					},
					gate: func(o *Options) {
						o.Settings.Passthrough = func(host string) bool { return strings.Contains(host, "passed") }
					},
				}
				if parent != "" {
					o.parent = startParent(t, parent)
				}
				w := newWorld(t, o)
				lookups.Clear()
				if status := c.sent(w); !c.lookedUp && status != "403" && status != "alert" {
					t.Errorf("status: got %s, want 403", status)
				}
				if got := slices.Collect(maps.Keys(maps.Collect(lookups.Range))); len(got) > 0 != c.lookedUp {
					t.Errorf("looked up: %v", got)
				}
				x := w.next(t)
				if denied := x.Decision != nil && x.Decision.Reason == policy.ByOverride && x.Status == 403; denied == c.lookedUp {
					t.Errorf("record: %+v", x)
				}
			})
		}
	}
}

func mustHost(t *testing.T, pattern string) glob.Glob {
	t.Helper()
	g, err := glob.Host(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return g
}
