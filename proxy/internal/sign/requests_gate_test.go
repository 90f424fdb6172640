package sign_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"robotsgate/internal/gatetest"
	"robotsgate/internal/store/storetest"
	"robotsgate/policy"
	"robotsgate/policy/canonical"
	"robotsgate/policy/glob"
	"robotsgate/proxy"
	"robotsgate/proxy/internal/proxytest"
)

// A request that net/http repeats, since a kept connection has been closed, carries the same signature.
func TestSignedOnce(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{Engine: withSigning(nil)})
	var mu sync.Mutex
	var attempts []*http.Request
	o := gatetest.StartLineOrigin(t, gatetest.Answering(func(n, i int, r *http.Request) string {
		mu.Lock()
		defer mu.Unlock()
		if r.URL.Path == "/robots.txt" {
			return gatetest.NotFound
		}
		attempts = append(attempts, r)
		if r.URL.Path == "/again" && len(attempts) == 2 {
			return "" // the connection is closed when the request has arrived
		}
		return gatetest.Numbered(n, i)
	}))
	for _, path := range []string{"/first", "/again"} {
		resp, _ := g.Get("http://" + o.Host + path)
		proxytest.WantStatus(t, resp, 200)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(attempts) != 3 || attempts[1].URL.Path != attempts[2].URL.Path {
		t.Fatalf("%d attempts, want 3, two of which are alike", len(attempts))
	}
	for _, r := range attempts[:2] {
		wantSigned(t, r, newTestKey(1), "string")
	}
	if first, second := attempts[1].Header.Get("Signature"), attempts[2].Header.Get("Signature"); first != second {
		t.Errorf("the request was repeated with another signature: %s and %s", first, second)
	}
}

// getAs sends a GET as a crawler.
func getAs(t *testing.T, g *proxytest.Gate, agent, url string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("User-Agent", agent)
	resp, err := g.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp
}

// A fetch of robots.txt is signed for the crawler that has caused it, each hop of a redirect for its own authority and
// path, also with another User-Agent. A refresh is signed by the crawler that is named.
func TestSignedRobots(t *testing.T) {
	var g *proxytest.Gate
	g = proxytest.Start(t, proxytest.Options{
		Engine: func(c *policy.Config) {
			c.Robots.UserAgent = "Fetcher/1.0"
			c.Crawlers.Known = []*policy.Crawler{
				signingCrawler("FirstBot", newTestKey(1), nil), signingCrawler("SecondBot", newTestKey(2), nil), {Name: "plain", UserAgents: []glob.Glob{glob.Text("PlainBot*")}},
			}
		},
		RobotsTxt: func(rw http.ResponseWriter, r *http.Request) {
			if r.TLS == nil {
				http.Redirect(rw, r, g.HTTPS+"/hop?x=y", http.StatusFound)
				return
			}
			http.NotFound(rw, r)
		},
		Handler: func(rw http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/hop" {
				http.NotFound(rw, r)
			}
		},
	})
	refresh := func(agent string) {
		target, err := canonical.ParseURL(g.HTTPS + "/")
		if err != nil {
			t.Fatal(err)
		}
		e := g.Proxy.Settings.Engine
		if _, err := e.Refresh(t.Context(), policy.Request{Target: target, UserAgent: agent, Crawler: e.Crawlers().Identify(policy.Client{UserAgent: agent})}); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		do    func()
		paths string
		key   byte // 0: none
	}{
		{func() { getAs(t, g, "SecondBot/1.0", g.HTTP+"/page") }, "/robots.txt /hop?x=y /page", 2},
		{func() { getAs(t, g, "FirstBot/1.0", g.HTTP+"/page") }, "/robots.txt /hop?x=y /page", 1},
		{func() { getAs(t, g, "FirstBot/1.0", g.HTTPS+"/page") }, "/robots.txt /page", 1},
		{func() { getAs(t, g, "PlainBot/1.0", g.HTTPS+"/page") }, "/robots.txt /page", 0},
		{func() { getAs(t, g, "Unknown/1.0", g.HTTPS+"/page") }, "/page", 0},
	} {
		step.do()
		var paths []string
		for _, r := range g.TakeRequests() {
			paths = append(paths, r.RequestURI)
			if agent := r.UserAgent(); r.URL.Path != "/page" && agent != "Fetcher/1.0" {
				t.Errorf("%s: User-Agent %s", r.RequestURI, agent)
			}
			if step.key == 0 {
				wantUnsigned(t, r)
			} else {
				wantSigned(t, r, newTestKey(step.key), "string")
			}
		}
		if got := strings.Join(paths, " "); got != step.paths {
			t.Errorf("got the requests %s, want %s", got, step.paths)
		}
	}
	refresh("Unknown/1.0") // it asks again as each of the two that have an answer
	signed := 0
	for _, r := range g.TakeRequests() {
		if r.Header.Get("Signature") != "" {
			wantSigned(t, r, newTestKey(1), "string")
			signed += 10
		}
		signed++
	}
	if signed != 12 {
		t.Errorf("%d requests of a refresh, %d signed, want 2, 1", signed%10, signed/10)
	}
}

// Through a parent proxy requests are signed as without one. CONNECT has no signature, nor has anything in a tunnel that is
// passed through unseen.
func TestSignedThroughParent(t *testing.T) {
	for _, scheme := range []string{"", "http", "https", "socks5"} {
		t.Run(scheme, func(t *testing.T) {
			o := proxytest.Options{
				Engine: withSigning(nil),
				Proxy: func(o *proxy.Options) {
					o.Settings.Passthrough = func(host string) bool { return host == "second.example.com" }
				},
			}
			if scheme != "" {
				o.Parent = proxytest.StartParent(t, scheme)
			}
			g := proxytest.Start(t, o)
			_, port, _ := net.SplitHostPort(proxytest.Host(g.HTTPS))
			if scheme != "" {
				g.HTTP, g.HTTPS, port = "http://loop.example.com", "https://loop.example.com", "443"
			}
			g.Ways(t, func(t *testing.T, v proxytest.Way) {
				resp, _ := v.Get(t, "/a?b")
				proxytest.WantStatus(t, resp, 200)
				resp, _ = proxytest.Send(t, v.Client, http.MethodPost, v.Origin+"/form", strings.NewReader("a body"))
				proxytest.WantStatus(t, resp, 200)
			})
			for _, r := range g.TakeRequests() {
				wantSigned(t, r, newTestKey(1), "string")
			}
			conn := tls.Client(g.Tunnel("second.example.com:"+port), &tls.Config{RootCAs: g.OriginRoots, ServerName: "second.example.com"})
			defer conn.Close()
			io.WriteString(conn, "GET /unseen HTTP/1.1\r\nHost: x\r\nSignature: own\r\nConnection: close\r\n\r\n")
			if answer, err := io.ReadAll(conn); proxytest.StatusOf(string(answer)) != "200" {
				t.Fatalf("inside the tunnel: %q, %v", answer, err)
			}
			for _, r := range g.TakeRequests() {
				if r.URL.Path != "/unseen" {
					wantUnsigned(t, r) // the tunnel belongs to an unknown client
				} else if len(r.Header["Signature-Input"]) != 0 || r.Header.Get("Signature") != "own" {
					t.Errorf("in the tunnel arrived %v", r.Header)
				}
			}
			if o.Parent == nil {
				return
			}
			for _, c := range o.Parent.Calls() {
				for name := range c.Header {
					if strings.HasPrefix(c.Line, "CONNECT ") && isSignature(name) {
						t.Errorf("%s has %s", c.Line, name)
					}
				}
			}
		})
	}
}

// A WebSocket handshake is signed as any GET, in clear and inside a tunnel.
func TestSignedWebSocket(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{
		Engine: withSigning(nil),
		Handler: func(rw http.ResponseWriter, r *http.Request) {
			conn, _, err := http.NewResponseController(rw).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		},
	})
	const handshake = " HTTP/1.1\r\nHost: %s\r\nUser-Agent: ExampleBot/1.0\r\nConnection: Upgrade, Signature\r\nSignature: x\r\nUpgrade: websocket\r\n\r\n"
	for _, answer := range []string{
		g.Raw(fmt.Sprintf("GET %s/chat"+handshake, g.HTTP, "x")),
		g.Secure(proxytest.Host(g.HTTPS), "127.0.0.1", fmt.Sprintf("GET /chat"+handshake, proxytest.Host(g.HTTPS))),
	} {
		if proxytest.StatusOf(answer) != "101" {
			t.Errorf("got %q", answer)
		}
		if x := g.Next(t); x.Signed != newTestKey(1).id {
			t.Errorf("the record has Signed %q", x.Signed)
		}
	}
	for _, r := range g.TakeRequests() {
		wantSigned(t, r, newTestKey(1), "string")
	}
}

// A failing key makes no signature.
type failingKey struct {
	testKey
	sign func() []byte
}

func (k failingKey) Sign([]byte) []byte { return k.sign() }

// If no signature can be made, the request fails with 500 and is not sent, nor is the fetch of robots.txt. That says
// nothing about the origin.
func TestNeverUnsigned(t *testing.T) {
	for name, sign := range map[string]func() []byte{
		"nothing": func() []byte { return nil },
		"panic":   func() []byte { panic("the key is 0123456789abcdef") },
	} {
		t.Run(name, func(t *testing.T) {
			g := proxytest.Start(t, proxytest.Options{Engine: func(c *policy.Config) {
				c.Crawlers.Known = []*policy.Crawler{
					signingCrawler("ExampleBot", failingKey{newTestKey(1), sign}, nil), signingCrawler("Working", newTestKey(1), nil),
				}
			}})
			g.Ways(t, func(t *testing.T, v proxytest.Way) {
				for range 2 { // before robots.txt is known, and after it
					for method, body := range map[string]string{"GET": "", "POST": "a body"} {
						resp, text := proxytest.Send(t, v.Client, method, v.Origin+"/page", strings.NewReader(body))
						proxytest.WantStatus(t, resp, 500)
						x := g.Next(t)
						if !strings.Contains(text, "could not be signed") || strings.Contains(text+x.Error, "0123456789abcdef") || x.Signed != "" {
							t.Errorf("the answer is %s, the record has Signed %q, Error %q", text, x.Signed, x.Error)
						}
					}
					for _, r := range g.TakeRequests() {
						t.Errorf("%s %s was sent: %v", r.Method, r.RequestURI, r.Header)
					}
					getAs(t, g, "Working/1.0", v.Origin+"/page")
					g.Next(t)
					g.TakeRequests()
				}
			})
		})
	}
}

// Other settings sign with other keys from the next request on. Each request is signed, by one key or the other.
func TestSignedAfterReload(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{Engine: withSigning(nil)})
	s := g.Proxy.Settings
	use := func(key testKey) {
		next := s
		next.Engine = s.Engine.Reconfigured(policy.Config{
			Crawlers: policy.Crawlers{Known: []*policy.Crawler{signingCrawler("ExampleBot", key, nil)}},
			Robots:   policy.DefaultRobots(), Transport: s.Upstream, Store: storetest.NewMap(), Log: slog.New(slog.DiscardHandler),
		})
		if err := g.Proxy.Use(next); err != nil {
			t.Error(err)
		}
	}
	stop := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		for i := byte(2); ; i = 5 - i { // keys 2 and 3
			select {
			case <-stop:
				return
			default:
				use(newTestKey(i))
			}
		}
	})
	g.Ways(t, func(t *testing.T, v proxytest.Way) {
		for range 50 {
			resp, _ := v.Get(t, "/a")
			proxytest.WantStatus(t, resp, 200)
			g.Next(t)
		}
	})
	close(stop)
	all.Wait()
	for _, r := range g.TakeRequests() {
		var err error
		for _, key := range []byte{1, 2, 3} {
			if _, err = verify(r, newTestKey(key), "string"); err == nil {
				break
			}
		}
		if err != nil {
			t.Error(err)
		}
	}
	use(newTestKey(4))
	g.Get(g.HTTP + "/after")
	wantSigned(t, g.Last(), newTestKey(4), "string")
}
