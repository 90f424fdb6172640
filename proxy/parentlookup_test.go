package proxy_test

import (
	"crypto/tls"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"robotsgate/policy"
	"robotsgate/policy/glob"
	"robotsgate/proxy"
	"robotsgate/proxy/internal/client"
	"robotsgate/proxy/internal/proxytest"
)

// overRedirect sends a request over a connection to a port that was redirected, in TLS if there is a server name, and
// returns the status of the answer. If the gate ends the handshake by denying access, the status is alert.
func overRedirect(g *proxytest.Gate, port, sni, request string) (status string) {
	g.T.Helper()
	conn := dialed(g.T, redirect(g.T, g, port))
	if sni == "" {
		io.WriteString(conn, request)
		return proxytest.StatusOf(proxytest.ReadAnswer(g.T, conn, request))
	}
	secure := tls.Client(conn, &tls.Config{RootCAs: g.Roots, ServerName: sni})
	if err := secure.Handshake(); err != nil && strings.HasSuffix(err.Error(), "tls: access denied") {
		return "alert"
	} else if err != nil {
		g.T.Fatal(err)
	}
	io.WriteString(secure, request)
	return proxytest.StatusOf(proxytest.ReadAnswer(g.T, secure, request))
}

// A host that an override denies is not looked up for redirected connections and those of SOCKS either, see
// TestDeniedHostIsNotResolved.
func TestDeniedHostIsNotLookedUp(t *testing.T) {
	for _, parent := range []string{"", "http", "https", "socks5"} {
		for _, c := range []struct {
			name string
			sent func(g *proxytest.Gate) (status string)
		}{
			{"redirected, in clear", func(g *proxytest.Gate) string {
				return overRedirect(g, "80", "", "GET / HTTP/1.1\r\nHost: secret.example.com\r\nConnection: close\r\n\r\n")
			}},
			{"redirected, in TLS", func(g *proxytest.Gate) string {
				return overRedirect(g, "443", "secret.example.com", "GET / HTTP/1.1\r\nHost: secret.example.com\r\nConnection: close\r\n\r\n")
			}},
			{"redirected, passthrough", func(g *proxytest.Gate) string {
				return overRedirect(g, "443", "secret.passed.example.com", "")
			}},
			{"SOCKS", func(g *proxytest.Gate) string {
				conn := dialed(g.T, g.Addr)
				io.WriteString(conn, "\x05\x01\x00"+socksTo("secret.example.com", "80"))
				received(g.T, conn, "\x05\x00"+socksReply(client.SocksNotAllowed))
				return "403"
			}},
		} {
			t.Run(parent+" "+c.name, func(t *testing.T) {
				o := proxytest.Options{
					Engine: func(e *policy.Config) {
						e.Overrides = []policy.Override{{Hosts: []glob.Glob{proxytest.MustHost(t, "secret.*")}, Action: policy.Deny, Reason: "not for us"}}
					},
					Proxy: func(o *proxy.Options) {
						o.Settings.Passthrough = func(host string) bool { return strings.Contains(host, "passed") }
					},
				}
				if parent != "" {
					o.Parent = proxytest.StartParent(t, parent)
				}
				g := proxytest.Start(t, o)
				proxytest.Lookups.Clear()
				if status := c.sent(g); status != "403" && status != "alert" {
					t.Errorf("status: got %s, want 403", status)
				}
				if got := slices.Collect(maps.Keys(maps.Collect(proxytest.Lookups.Range))); len(got) > 0 {
					t.Errorf("looked up: %v", got)
				}
				if x := g.Next(t); x.Reason != string(policy.ByOverride) || x.Status != 403 {
					t.Errorf("record: %+v", x)
				}
			})
		}
	}
}
