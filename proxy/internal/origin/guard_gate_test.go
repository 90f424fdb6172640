package origin_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"robotsgate/policy"
	"robotsgate/policy/canonical"
	"robotsgate/policy/glob"
	"robotsgate/proxy"
	"robotsgate/proxy/internal/origin"
	"robotsgate/proxy/internal/proxytest"
)

// wantProhibited fails unless a destination was refused by the guard, with no
// decision, since there is nothing to decide about.
func wantProhibited(t *testing.T, resp *http.Response) {
	t.Helper()
	proxytest.WantStatus(t, resp, 403)
	proxytest.WantHeader(t, resp, "Proxy-Status", "robotsgate;error=destination_ip_prohibited")
	for _, name := range []string{"Robots-Gate-Decision", "Robots-Gate-Source", "Robots-Gate-Tags", "Robots-Gate-Meta"} {
		proxytest.WantHeader(t, resp, name, "")
	}
	if resp.Header.Get("Robots-Gate-Id") == "" {
		t.Error("no id")
	}
}

// Whether named or resolved, in clear or in TLS, what is special-purpose is not
// connected to.
func TestProhibitedDestinations(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{Egress: func(e *proxy.Egress) { e.AllowPrivate = nil }})
	for _, origin := range []string{g.HTTP, g.HTTPS} {
		scheme, port, _ := strings.Cut(origin, "127.0.0.1")
		for _, h := range []string{"127.0.0.1", "localhost", "LOCALHOST.", "loop.example.com", "mixed.example.com", "metadata.example.com", "[::1]",
			"[::ffff:127.0.0.1]", "0.0.0.0", "[::]", "169.254.169.254"} {
			for _, client := range []*http.Client{g.ClientVia("http", g.Addr, false), g.Client()} {
				resp, body := proxytest.Send(t, client, http.MethodGet, scheme+h+port+"/", nil)
				wantProhibited(t, resp)
				if !strings.Contains(body, "urn:robotsgate:prohibited") {
					t.Errorf("%s: %s", h, body)
				}
			}
		}
	}
	if n := g.Count(); n > 0 {
		t.Errorf("%d requests reached an origin", n)
	}
}

// A name with several addresses is reached at those that are permitted.
func TestMixedAddresses(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{})
	resp, _ := g.Get(strings.Replace(g.HTTP, "127.0.0.1", "mixed.example.com", 1) + "/")
	proxytest.WantStatus(t, resp, 200)
}

// A name that changes its address between two lookups gains nothing: the guard judges each address that is dialled,
// also when the name has been permitted before.
func TestChangedAddress(t *testing.T) {
	g, c := startConnecting(t, proxytest.Options{}, &origin.Conns{}, nil)
	at := func(addr string) { proxytest.Changing.Store(&addr) }
	defer proxytest.Changing.Store(nil)
	for _, origin := range []string{g.HTTP, g.HTTPS} {
		url := strings.Replace(origin, "127.0.0.1", "changing.example.com", 1) + "/"
		at("127.0.0.1")
		resp, _ := g.Get(url)
		proxytest.WantStatus(t, resp, 200)
		c.closeKept(t) // else no name is looked up
		at("169.254.169.254")
		resp, _ = g.Get(url)
		proxytest.WantStatus(t, resp, 403)
		proxytest.WantHeader(t, resp, "Proxy-Status", "robotsgate;error=destination_ip_prohibited")
	}
	proxytest.WantArrived(t, g, "GET /", "GET /")
}

// A robots.txt that redirects inward is unreachable, and what it leads to is
// never asked. Here that is the admin listener, on the same loopback that the
// operator permits.
func TestRobotsRedirectInward(t *testing.T) {
	var hits atomic.Int32
	admin := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	defer admin.Close()
	var to atomic.Value
	g := proxytest.Start(t, proxytest.Options{
		RobotsTxt: func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Location", to.Load().(string))
			rw.WriteHeader(http.StatusMovedPermanently)
		},
		Egress: func(e *proxy.Egress) {
			e.Own = func() []netip.AddrPort { return []netip.AddrPort{netip.MustParseAddrPort(proxytest.Host(admin.URL))} }
		},
		Engine: func(c *policy.Config) { c.Robots.MinAge = 0 },
	})
	port := strings.TrimPrefix(admin.URL, "http://127.0.0.1")
	for i, target := range []string{admin.URL + "/healthz", "http://localhost" + port + "/", "http://loop.example.com" + port + "/", "//127.0.0.1" + port + "/", "http://[::ffff:127.0.0.1]" + port + "/",
		"http://169.254.169.254/latest/meta-data/", "http://metadata.example.com/", "http://10.0.0.1/robots.txt"} {
		to.Store(target)
		// Every time under another name, since what is known of one is kept.
		origin := []string{g.HTTP, strings.Replace(g.HTTP, "127.0.0.1", "localhost", 1), strings.Replace(g.HTTP, "127.0.0.1", "loop.example.com", 1),
			strings.Replace(g.HTTP, "127.0.0.1", "mixed.example.com", 1), g.HTTPS}[i%5]
		if i >= 5 {
			g.Proxy.Settings.Engine.Refresh(t.Context(), policy.Request{Target: mustTarget(t, origin), Crawler: g.Proxy.Settings.Engine.Crawlers().Default, UserAgent: "ExampleBot/1.0"})
		}
		resp, body := g.Get(origin + "/")
		proxytest.WantStatus(t, resp, 403)
		proxytest.WantHeader(t, resp, "Robots-Gate-Decision", "deny;reason=unreachable")
		if !strings.Contains(body, "address ") {
			t.Errorf("%s: the refusal does not say why: %s", target, body)
		}
	}
	proxytest.WantArrived(t, g)
	if n := hits.Load(); n > 0 {
		t.Errorf("the admin listener was asked %d times", n)
	}
}

func mustTarget(t *testing.T, url string) canonical.Target {
	target, err := canonical.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	return target
}

// The gate's own address is prohibited to its clients, by any name and in any
// kind of tunnel; otherwise one request could make it send requests to itself for ever.
func TestOwnAddress(t *testing.T) {
	for _, listen := range []string{"127.0.0.1:0", "0.0.0.0:0"} {
		t.Run(listen, func(t *testing.T) {
			var own atomic.Pointer[netip.AddrPort]
			g := proxytest.Start(t, proxytest.Options{
				Listen: listen,
				Egress: func(e *proxy.Egress) {
					e.Own = func() []netip.AddrPort { return []netip.AddrPort{*own.Load()} }
				},
				Proxy: func(o *proxy.Options) { o.Settings.Passthrough = func(host string) bool { return host == "127.0.0.1" } },
			})
			addr := netip.MustParseAddrPort(g.Addr)
			own.Store(&addr)
			at := fmt.Sprintf(":%d", addr.Port())
			g.Addr = "127.0.0.1" + at
			for _, url := range []string{"http://127.0.0.1" + at, "http://localhost" + at, "https://localhost" + at, "http://loop.example.com" + at} {
				resp, _ := g.Get(url + "/")
				wantProhibited(t, resp)
			}
			_, resp := g.ConnectTo(t, "127.0.0.1"+at)
			wantProhibited(t, resp)
			if n := g.Count(); n > 0 {
				t.Errorf("%d requests reached an origin", n)
			}
		})
	}
}

// One address has one name, whichever way it is spelt, and the address that means "this machine" leads to the gate itself.
func TestSpellingsOfAddresses(t *testing.T) {
	for _, c := range []struct {
		egress func(*proxy.Egress)
		names  []string
	}{
		{func(e *proxy.Egress) { e.DenyHosts = []glob.Glob{proxytest.MustHost(t, "127.0.0.1")} },
			[]string{"127.0.0.1", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]"}},
		{func(e *proxy.Egress) {
			e.AllowPrivate = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
		}, []string{"0.0.0.0", "[::]", "[::ffff:0.0.0.0]"}},
	} {
		g := proxytest.Start(t, proxytest.Options{Egress: c.egress})
		_, port, _ := net.SplitHostPort(proxytest.Host(g.HTTP))
		for _, name := range c.names {
			resp, _ := g.Get("http://" + name + ":" + port + "/")
			wantProhibited(t, resp)
		}
		proxytest.WantArrived(t, g)
	}
}
