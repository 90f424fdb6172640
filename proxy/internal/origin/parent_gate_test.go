package origin_test

import (
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"robotsgate/internal/gatetest"
	"robotsgate/policy"
	"robotsgate/proxy"
	"robotsgate/proxy/internal/proxytest"
)

// Everything leaves through the parent, by name: whatever it is, plain, TLS or a
// tunnel that is not opened.
func TestParent(t *testing.T) {
	for _, scheme := range []string{"http", "https", "socks5"} {
		t.Run(scheme, func(t *testing.T) {
			p := proxytest.StartParent(t, scheme)
			g := proxytest.Start(t, proxytest.Options{
				Parent: p,
				Egress: func(e *proxy.Egress) { e.AllowPrivate = nil }, // the parent's own address needs no permission
				Proxy: func(o *proxy.Options) {
					o.Settings.Passthrough = func(host string) bool { return host == "unseen.example.com" }
				},
			})
			g.HTTP, g.HTTPS = "http://away.example.com", "https://away.example.com"
			g.Ways(t, func(t *testing.T, v proxytest.Way) {
				resp, body := v.Get(t, "/a")
				proxytest.WantStatus(t, resp, 200)
				if body != "hello from /a" {
					t.Errorf("body: got %q", body)
				}
				resp, _ = v.Get(t, "/private/")
				proxytest.WantStatus(t, resp, 403)
				proxytest.WantHeader(t, resp, "Robots-Gate-Decision", "deny;reason=rule")
			})
			proxytest.WantArrived(t, g, "GET /a", "GET /a", "GET /a")
			before := len(p.Asked())
			conn := tls.Client(g.Tunnel("unseen.example.com:443"), &tls.Config{RootCAs: g.OriginRoots, ServerName: "unseen.example.com"})
			defer conn.Close()
			io.WriteString(conn, "GET /private/ HTTP/1.1\r\nHost: unseen.example.com\r\nConnection: close\r\n\r\n")
			if answer, err := io.ReadAll(conn); proxytest.StatusOf(string(answer)) != "200" {
				t.Errorf("inside the tunnel: %q, %v", answer, err)
			}
			if n := len(p.Asked()) - before; n != 2 { // robots.txt, and the tunnel itself
				t.Errorf("the parent was asked %d times on behalf of a tunnel, want 2", n)
			}
			want := []string{"CONNECT away.example.com:80", "CONNECT away.example.com:443", "CONNECT unseen.example.com:443"}
			if scheme != "socks5" {
				want = append(want[1:], "GET http://away.example.com/robots.txt", "GET http://away.example.com/a")
			}
			for _, line := range want {
				if !slices.Contains(p.Asked(), line) {
					t.Errorf("the parent was not asked for %q, only for %q", line, p.Asked())
				}
			}
			for _, c := range p.Calls() {
				if c.Login != "gate:s3cret" {
					t.Errorf("%s: credentials %q", c.Line, c.Login)
				}
				// The gate adds nothing of its own, here neither.
				if strings.HasPrefix(c.Line, "CONNECT") && c.Header.Get("User-Agent") != "" {
					t.Errorf("%s: User-Agent %q", c.Line, c.Header.Get("User-Agent"))
				}
			}
		})
	}
}

// A parent is no way round the guard, as far as the gate can see.
func TestParentKeepsTheGuard(t *testing.T) {
	for _, scheme := range []string{"http", "socks5"} {
		t.Run(scheme, func(t *testing.T) {
			p := proxytest.StartParent(t, scheme)
			g := proxytest.Start(t, proxytest.Options{
				Parent: p,
				Egress: func(e *proxy.Egress) { e.AllowPrivate = nil },
				Proxy: func(o *proxy.Options) {
					o.Settings.Passthrough = func(host string) bool { return strings.HasPrefix(host, "10.") }
				},
			})
			for _, host := range []string{"127.0.0.1", "169.254.169.254", "[::1]", "[::ffff:192.168.0.1]", "localhost", "loop.example.com", "metadata.example.com", "mixed.example.com", proxytest.Host(p.URL.Host)} {
				for _, scheme := range []string{"http://", "https://"} {
					resp, _ := g.Get(scheme + host + "/")
					proxytest.WantStatus(t, resp, 403)
					proxytest.WantHeader(t, resp, "Proxy-Status", "robotsgate;error=destination_ip_prohibited")
				}
			}
			if answer := g.Raw("CONNECT 10.0.0.1:443 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); proxytest.StatusOf(answer) != "403" {
				t.Errorf("a tunnel to 10.0.0.1: %s", answer)
			}
			if asked := p.Asked(); len(asked) > 0 {
				t.Errorf("the parent was asked for %q", asked)
			}
		})
	}
}

func TestParentIsDown(t *testing.T) {
	for _, scheme := range []string{"http", "https", "socks5"} {
		t.Run(scheme, func(t *testing.T) {
			p := proxytest.StartParent(t, scheme)
			g := proxytest.Start(t, proxytest.Options{Parent: p, Egress: func(e *proxy.Egress) { e.AllowPrivate = nil },
				Engine: proxytest.AllowHost(t, "unseen.example.com"),
				Proxy: func(o *proxy.Options) {
					o.Settings.Passthrough = func(host string) bool { return host == "unseen.example.com" }
				}})
			known := "http://known.example.com/"
			if resp, _ := g.Get(known); resp.StatusCode != 200 {
				t.Fatalf("got %d while the parent is up", resp.StatusCode)
			}
			p.Close()
			http.DefaultTransport.(*http.Transport).CloseIdleConnections()
			g.Transport.Close()
			resp, _ := g.Get(known)
			proxytest.WantStatus(t, resp, 502)
			proxytest.WantHeader(t, resp, "Robots-Gate-Decision", "allow;reason=no-match")
			for _, url := range []string{"http://new.example.com/", "https://new.example.com/"} {
				resp, body := g.Get(url)
				proxytest.WantStatus(t, resp, 403)
				proxytest.WantHeader(t, resp, "Robots-Gate-Decision", "deny;reason=unreachable")
				if !strings.Contains(body, `"title": "The parent proxy could not be reached"`) || strings.Contains(body, `"override"`) {
					t.Errorf("the refusal blames the origin, or advises an override: %s", body)
				}
			}
			answer := g.Raw("CONNECT unseen.example.com:443 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
			if proxytest.StatusOf(answer) != "502" || !strings.Contains(answer, "Robots-Gate-Decision"+": allow;reason=override") {
				t.Errorf("a tunnel: %s", answer)
			}
		})
	}
}

// A parent that closes connections without an answer has failed, and not the origin.
func TestParentIsSilent(t *testing.T) {
	for _, scheme := range []string{"http", "https", "socks5"} {
		t.Run(scheme, func(t *testing.T) {
			silent := gatetest.StartLineOrigin(t, func(_ int, conn net.Conn) { conn.Read(make([]byte, 1<<10)) })
			g := proxytest.Start(t, proxytest.Options{
				Engine: proxytest.AllowHost(t, "open.example.com"),
				Egress: func(e *proxy.Egress) {
					e.AllowPrivate, e.Parent = nil, &url.URL{Scheme: scheme, Host: silent.Host}
				},
				Proxy: func(o *proxy.Options) {
					o.Settings.Passthrough = func(host string) bool { return host == "open.example.com" }
				}})
			const title = "The parent proxy could not be reached"
			for _, url := range []string{"http://new.example.com/", "https://new.example.com/", "http://open.example.com/"} {
				if _, body := g.Get(url); !strings.Contains(body, title) {
					t.Errorf("%s: the origin is blamed: %s", url, body)
				}
			}
			if answer := g.Raw("CONNECT open.example.com:443 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); !strings.Contains(answer, title) {
				t.Errorf("a tunnel: %s", answer)
			}
		})
	}
}

func TestParentRefuses(t *testing.T) {
	for _, scheme := range []string{"http", "https", "socks5"} {
		t.Run(scheme, func(t *testing.T) {
			p := proxytest.StartParent(t, scheme)
			p.Refuses(http.StatusBadGateway)
			g := proxytest.Start(t, proxytest.Options{Parent: p, Engine: proxytest.AllowHost(t, "unseen.example.com"),
				Proxy: func(o *proxy.Options) {
					o.Settings.Passthrough = func(host string) bool { return host == "unseen.example.com" }
				}})
			for _, url := range []string{"http://new.example.com/", "https://new.example.com/"} {
				resp, body := g.Get(url)
				proxytest.WantStatus(t, resp, 403)
				proxytest.WantHeader(t, resp, "Robots-Gate-Decision", "deny;reason=unreachable")
				if strings.Contains(body, "s3cret") {
					t.Errorf("the refusal tells the parent's password: %s", body)
				}
			}
			answer := g.Raw("CONNECT unseen.example.com:443 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
			if proxytest.StatusOf(answer) != "502" || strings.Contains(answer, "s3cret") {
				t.Errorf("a tunnel: %s", answer)
			}
			all := g.Records()
			if x := all[len(all)-1]; x.Error == "" || strings.Contains(x.Error, "s3cret") {
				t.Errorf("the record says %q", x.Error)
			}
		})
	}
}

// A parent that asks for a login is no origin without a robots.txt, and what was known
// before stays.
func TestParentWantsLogin(t *testing.T) {
	for _, scheme := range []string{"http", "https"} {
		t.Run(scheme, func(t *testing.T) {
			p := proxytest.StartParent(t, scheme)
			g := proxytest.Start(t, proxytest.Options{Parent: p, Engine: proxytest.AllowHost(t, "unseen.example.com"), Proxy: func(o *proxy.Options) {
				o.Settings.Passthrough = func(host string) bool { return host == "unseen.example.com" }
			}})
			known := "http://known.example.com"
			if resp, _ := g.Get(known + "/private/x"); resp.StatusCode != 403 {
				t.Fatalf("got %d while the parent is content", resp.StatusCode)
			}
			p.Refuses(http.StatusProxyAuthRequired)
			resp, _ := g.Get(known + "/")
			proxytest.WantStatus(t, resp, 502)
			proxytest.WantHeader(t, resp, "Robots-Gate-Decision", "allow;reason=no-match")
			proxytest.WantHeader(t, resp, "Proxy-Status", `robotsgate;error=proxy_configuration_error;details="it answered 407 Proxy Authentication Required: the login in egress.proxy is missing or wrong"`)
			for _, url := range []string{"http://new.example.com/private/x", "https://new.example.com/private/x"} {
				resp, body := g.Get(url)
				proxytest.WantStatus(t, resp, 403)
				proxytest.WantHeader(t, resp, "Robots-Gate-Decision", "deny;reason=unreachable")
				if !strings.Contains(body, "egress.proxy") {
					t.Errorf("the refusal does not say where to look: %s", body)
				}
			}
			answer := g.Raw("CONNECT unseen.example.com:443 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
			if proxytest.StatusOf(answer) != "502" || !strings.Contains(answer, "error=proxy_configuration_error") {
				t.Errorf("a tunnel: %s", answer)
			}
			p.Refuses(0)
			resp, _ = g.Get(known + "/private/x")
			proxytest.WantHeader(t, resp, "Robots-Gate-Decision", "deny;reason=rule")
		})
	}
}

// A parent that repeats the login of egress.proxy, in its reason phrase or in anything else
// that is not the content of a response, tells it neither to clients nor to logs and records.
func TestParentEchoesLogin(t *testing.T) {
	const length = "Content-Length: 5\r\n\r\nLOGIN"
	for name, says := range map[string]string{
		"a reason phrase":            "HTTP/1.1 403 no LOGIN\r\n" + length,
		"407":                        "HTTP/1.1 407 no LOGIN\r\nProxy-Authenticate: Basic realm=\"LOGIN\"\r\n" + length,
		"a reason phrase of 502":     "HTTP/1.1 502 LOGIN\r\nContent-Length: 0\r\n\r\n",
		"a reason phrase of no name": "HTTP/1.1 599 LOGIN\r\nContent-Length: 0\r\n\r\n",
		"a redirect":                 "HTTP/1.1 302 LOGIN\r\nContent-Length: 0\r\n\r\n",
		"another 2xx":                "HTTP/1.1 201 LOGIN\r\n\r\n",
		"another status":             "HTTP/1.1 LOGIN\r\n\r\n",
		"another protocol":           "LOGIN\r\n\r\n",
		"a field that is none":       "HTTP/1.1 200 OK\r\nLOGIN\r\n\r\n",
		"a length that is none":      "HTTP/1.1 200 OK\r\nContent-Length: LOGIN\r\n\r\n",
		"a coding that is none":      "HTTP/1.1 200 OK\r\nTransfer-Encoding: LOGIN\r\n\r\n",
	} {
		for _, scheme := range []string{"http", "https", "socks5"} {
			t.Run(name+" of "+scheme, func(t *testing.T) {
				p := proxytest.StartParent(t, scheme)
				p.Says = says
				var said gatetest.Output
				log := slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelDebug}))
				g := proxytest.Start(t, proxytest.Options{
					Parent: p,
					Egress: func(e *proxy.Egress) { e.AllowPrivate = nil },
					Engine: func(c *policy.Config) {
						proxytest.AllowHost(t, "unseen.example.com")(c)
						proxytest.AllowHost(t, "open.example.com")(c)
						c.Log = log
					},
					Proxy: func(o *proxy.Options) {
						o.Log = log
						o.Settings.Passthrough = func(host string) bool { return host == "unseen.example.com" }
					}})
				var answers []string
				for _, url := range []string{"http://new.example.com/", "https://new.example.com/", "https://open.example.com/"} {
					for _, accept := range []string{"*/*", "text/html"} {
						resp, body := g.Get(url, "Accept", accept)
						answers = append(answers, fmt.Sprint(url, " ", resp.Status, resp.Header, body))
						if resp.StatusCode < 400 && strings.HasPrefix(url, "https:") {
							t.Errorf("%s: %s", url, resp.Status)
						}
					}
				}
				// What a parent answers to a request in clear is a response of the origin's, and so is
				// its content; only an answer that is not understood is worded by the gate.
				resp, _ := g.Get("http://open.example.com/")
				answers = append(answers, fmt.Sprint("http://open.example.com/ ", resp.Status, resp.Header.Get("Proxy-Status")))
				answers = append(answers, g.Raw("CONNECT unseen.example.com:443 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"))
				for _, x := range g.Records() {
					answers = append(answers, "record: "+x.Error, "cause: "+x.Cause)
				}
				answers = append(answers, "log: "+said.String())
				encoded := base64.StdEncoding.EncodeToString([]byte("gate:s3cret"))
				for _, answer := range answers {
					if strings.Contains(answer, "s3cret") || strings.Contains(answer, encoded) || strings.Contains(answer, "LOGIN") {
						t.Errorf("the login is told: %s", answer)
					}
				}
			})
		}
	}
}

// NewTransport refuses a parent that it cannot speak to, instead of speaking plain HTTP to it.
func TestParentScheme(t *testing.T) {
	for _, scheme := range []string{"", "ftp", "socks4", "socks5h"} {
		if _, err := proxy.NewTransport(proxy.Egress{Parent: &url.URL{Scheme: scheme, Host: "parent.example"}}, nil); err == nil {
			t.Errorf("the scheme %q is accepted", scheme)
		}
	}
}
