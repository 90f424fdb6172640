package proxy

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"robotsgate/policy"
	"robotsgate/policy/canonical"
)

// wantProhibited fails unless a destination was refused by the guard, with no
// decision, since there is nothing to decide about.
func wantProhibited(t *testing.T, resp *http.Response) {
	t.Helper()
	wantStatus(t, resp, 403)
	wantHeader(t, resp, proxyStatus, "robotsgate;error=destination_ip_prohibited")
	for _, name := range []string{headerDecision, headerSource, headerTags, headerMeta} {
		wantHeader(t, resp, name, "")
	}
	if resp.Header.Get(headerID) == "" {
		t.Error("no id")
	}
}

// Whether named or resolved, in clear or in TLS, what is special-purpose is not
// connected to.
func TestProhibitedDestinations(t *testing.T) {
	w := newWorld(t, options{egress: func(e *Egress) { e.AllowPrivate = nil }})
	for _, origin := range []string{w.http, w.https} {
		scheme, port, _ := strings.Cut(origin, "127.0.0.1")
		for _, h := range []string{"127.0.0.1", "localhost", "LOCALHOST.", "loop.example.com", "mixed.example.com", "metadata.example.com", "[::1]",
			"[::ffff:127.0.0.1]", "0.0.0.0", "[::]", "169.254.169.254"} {
			for _, client := range []*http.Client{w.clientVia("http", w.addr, false), w.client()} {
				resp, body := send(t, client, http.MethodGet, scheme+h+port+"/", nil)
				wantProhibited(t, resp)
				if !strings.Contains(body, "urn:robotsgate:prohibited") {
					t.Errorf("%s: %s", h, body)
				}
			}
		}
	}
	if n := w.count(); n > 0 {
		t.Errorf("%d requests reached an origin", n)
	}
}

// A name with several addresses is reached at those that are permitted.
func TestMixedAddresses(t *testing.T) {
	w := newWorld(t, options{})
	resp, _ := w.get(strings.Replace(w.http, "127.0.0.1", "mixed.example.com", 1) + "/")
	wantStatus(t, resp, 200)
}

// A name that changes its address between two lookups gains nothing: the guard judges each address that is dialled,
// also when the name has been permitted before.
func TestChangedAddress(t *testing.T) {
	w := newWorld(t, options{})
	at := func(addr string) { changing.Store(&addr) }
	defer changing.Store(nil)
	for _, origin := range []string{w.http, w.https} {
		url := strings.Replace(origin, "127.0.0.1", "changing.example.com", 1) + "/"
		at("127.0.0.1")
		resp, _ := w.get(url)
		wantStatus(t, resp, 200)
		w.closeKept(t) // else no name is looked up
		at("169.254.169.254")
		resp, _ = w.get(url)
		wantStatus(t, resp, 403)
		wantHeader(t, resp, proxyStatus, "robotsgate;error=destination_ip_prohibited")
	}
	wantArrived(t, w, "GET /", "GET /")
}

// A robots.txt that redirects inward is unreachable, and what it leads to is
// never asked. Here that is the admin listener, on the same loopback that the
// operator permits.
func TestRobotsRedirectInward(t *testing.T) {
	var hits atomic.Int32
	admin := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	defer admin.Close()
	var to atomic.Value
	w := newWorld(t, options{
		robotsTxt: func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Location", to.Load().(string))
			rw.WriteHeader(http.StatusMovedPermanently)
		},
		egress: func(e *Egress) {
			e.Own = func() []netip.AddrPort { return []netip.AddrPort{netip.MustParseAddrPort(host(admin.URL))} }
		},
		engine: func(c *policy.Config) { c.Robots.MinAge = 0 },
	})
	port := strings.TrimPrefix(admin.URL, "http://127.0.0.1")
	for i, target := range []string{admin.URL + "/healthz", "http://localhost" + port + "/", "http://loop.example.com" + port + "/", "//127.0.0.1" + port + "/", "http://[::ffff:127.0.0.1]" + port + "/",
		"http://169.254.169.254/latest/meta-data/", "http://metadata.example.com/", "http://10.0.0.1/robots.txt"} {
		to.Store(target)
		// Every time under another name, since what is known of one is kept.
		origin := []string{w.http, strings.Replace(w.http, "127.0.0.1", "localhost", 1), strings.Replace(w.http, "127.0.0.1", "loop.example.com", 1),
			strings.Replace(w.http, "127.0.0.1", "mixed.example.com", 1), w.https}[i%5]
		if i >= 5 {
			w.gate.Settings.Engine.Refresh(t.Context(), policy.Request{Target: mustTarget(t, origin), Crawler: w.gate.Settings.Engine.Crawlers().Default, UserAgent: "ExampleBot/1.0"})
		}
		resp, body := w.get(origin + "/")
		wantStatus(t, resp, 403)
		wantHeader(t, resp, headerDecision, "deny;reason=unreachable")
		if !strings.Contains(body, "address ") {
			t.Errorf("%s: the refusal does not say why: %s", target, body)
		}
	}
	wantArrived(t, w)
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
			w := newWorld(t, options{
				listen: listen,
				egress: func(e *Egress) {
					e.Own = func() []netip.AddrPort { return []netip.AddrPort{*own.Load()} }
				},
				gate: func(o *Options) { o.Settings.Passthrough = func(host string) bool { return host == "127.0.0.1" } },
			})
			addr := netip.MustParseAddrPort(w.addr)
			own.Store(&addr)
			at := fmt.Sprintf(":%d", addr.Port())
			w.addr = "127.0.0.1" + at
			for _, url := range []string{"http://127.0.0.1" + at, "http://localhost" + at, "https://localhost" + at, "http://loop.example.com" + at} {
				resp, _ := w.get(url + "/")
				wantProhibited(t, resp)
			}
			_, resp := w.connectTo(t, "127.0.0.1"+at)
			wantProhibited(t, resp)
			if n := w.count(); n > 0 {
				t.Errorf("%d requests reached an origin", n)
			}
		})
	}
}
