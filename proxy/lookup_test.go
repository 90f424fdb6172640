package proxy_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"robotsgate/internal/record"
	"robotsgate/policy"
	"robotsgate/policy/glob"
	"robotsgate/proxy/internal/proxytest"
)

// TestDeniedHostIsNotResolved: a client must not be able to send data in the names of hosts that an
// override denies. In report mode the request is sent, so its name is resolved.
func TestDeniedHostIsNotResolved(t *testing.T) {
	hosts := func(pattern string) []glob.Glob { return []glob.Glob{proxytest.MustHost(t, pattern)} }
	allowlist := func(mode policy.Mode) func(*policy.Config) {
		return func(c *policy.Config) {
			c.Crawlers.Default.Mode = mode
			c.Overrides = []policy.Override{
				{Hosts: hosts("*.listed.example.com"), Paths: []string{"/docs/"}, Methods: []string{"GET"}, Action: policy.LeaveToRobots, Reason: "listed"},
				{Hosts: hosts("*"), Action: policy.Deny, Reason: "not in the list"},
			}
		}
	}
	get := func(scheme, path string) func(*proxytest.Gate, string) *http.Response {
		return func(g *proxytest.Gate, name string) *http.Response {
			resp, _ := g.Get(scheme + "://" + name + path)
			return resp
		}
	}
	tunnel := func(g *proxytest.Gate, name string) *http.Response {
		_, resp := g.ConnectTo(g.T, name+":443", "User-Agent: ExampleBot/1.0")
		return resp
	}
	clearInTunnel := func(g *proxytest.Gate, name string) *http.Response {
		conn, resp := g.ConnectTo(g.T, name+":80")
		proxytest.WantStatus(g.T, resp, 200)
		fmt.Fprintf(conn, "GET /x HTTP/1.1\r\nHost: %s\r\nUser-Agent: ExampleBot/1.0\r\n\r\n", name)
		resp, err := proxytest.ReadHead(conn)
		if err != nil {
			g.T.Fatal(err)
		}
		return resp
	}
	httpsInClear := func(g *proxytest.Gate, name string) *http.Response {
		conn := g.Dial()
		g.T.Cleanup(func() { conn.Close() })
		fmt.Fprintf(conn, "GET https://%s/x HTTP/1.1\r\nHost: %[1]s\r\nUser-Agent: ExampleBot/1.0\r\n\r\n", name)
		resp, err := proxytest.ReadHead(conn)
		if err != nil {
			g.T.Fatal(err)
		}
		return resp
	}
	post := func(g *proxytest.Gate, name string) *http.Response {
		resp, _ := g.Do(http.MethodPost, "http://"+name+"/docs/x", strings.NewReader("data"))
		return resp
	}
	n := 0
	for _, c := range []struct {
		name   string
		below  string // the domain; listed: some requests to its hosts are permitted
		send   func(*proxytest.Gate, string) *http.Response
		unseen bool
	}{
		{"in clear", "denied", get("http", "/x"), false},
		{"robots.txt", "denied", get("http", "/robots.txt"), false},
		{"in TLS", "denied", get("https", "/x"), false},
		{"https in clear", "denied", httpsInClear, false},
		{"in clear in a tunnel", "denied", clearInTunnel, false},
		{"a passthrough tunnel", "denied", tunnel, true},
		{"another path", "listed", get("https", "/x"), false},
		{"another method", "listed", post, false},
		{"a passthrough tunnel to a host of which some is listed", "listed", tunnel, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, parent := range []string{"", "http", "https", "socks5"} { // the gate looks up names to guard them, also with a parent
				for _, mode := range []policy.Mode{policy.Enforce, policy.Report} {
					o := proxytest.Options{Engine: allowlist(mode)}
					if c.unseen {
						o.Proxy = proxytest.PassThrough
					}
					if parent != "" {
						o.Parent = proxytest.StartParent(t, parent)
					}
					n++
					name := fmt.Sprintf("secret-%d.%s.example.com", n, c.below)
					resp := c.send(proxytest.Start(t, o), name)
					_, resolved := proxytest.Lookups.Load(name + ".")
					if reported := mode == policy.Report; resolved != reported {
						t.Errorf("parent %q, mode %s: resolved %v", parent, mode, resolved)
					} else if !reported {
						proxytest.WantStatus(t, resp, 403)
						proxytest.WantHeader(t, resp, "Robots-Gate-Decision", `deny;reason=override;token="ExampleBot";note="not in the list"`)
					}
				}
			}
		})
	}
	// The first request that is permitted resolves the name.
	g := proxytest.Start(t, proxytest.Options{Engine: allowlist(policy.Enforce)})
	get("https", "/docs/x")(g, "first.listed.example.com")
	if _, resolved := proxytest.Lookups.Load("first.listed.example.com."); !resolved {
		t.Error("a permitted host has not been resolved")
	}
}

// TestMethodClaims: where an override has methods, a header must not name another method.
func TestMethodClaims(t *testing.T) {
	listed := func(methods ...string) func(*policy.Config) {
		return func(c *policy.Config) {
			c.Overrides = []policy.Override{{Hosts: []glob.Glob{glob.Text("*")}, Methods: methods, Action: policy.LeaveToRobots, Reason: "listed"}}
		}
	}
	for _, c := range []struct {
		name, header, value string
		engine              func(*policy.Config)
		status              int
	}{
		{"another method", "X-HTTP-Method-Override", "DELETE", listed("GET", "POST"), 400},
		{"another name", "X-Http-Method", "DELETE", listed("POST"), 400},
		{"another spelling of the name", "x_method_override", "delete", listed("POST"), 400},
		{"the same method", "X-HTTP-Method-Override", "POST", listed("POST"), 200},
		{"no methods", "X-HTTP-Method-Override", "DELETE", listed(), 200},
	} {
		g := proxytest.Start(t, proxytest.Options{Engine: c.engine})
		resp, _ := g.Do(http.MethodPost, g.HTTP+"/x", strings.NewReader("data"), c.header, c.value)
		if resp.StatusCode != c.status {
			t.Errorf("%s: status %d, want %d", c.name, resp.StatusCode, c.status)
		}
		if x := g.Next(t); c.status == 400 && (x.Refused != record.IsMalformed || x.Decision != "") {
			t.Errorf("%s: the record is %+v", c.name, x)
		}
	}
}
