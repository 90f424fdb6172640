package sign_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"robotsgate/internal/ca"
	"robotsgate/internal/gatetest"
	"robotsgate/internal/store"
	"robotsgate/policy"
	"robotsgate/policy/canonical"
	"robotsgate/policy/glob"
	"robotsgate/policy/snapshot"
	"robotsgate/proxy"
	"robotsgate/proxy/internal/proxytest"
)

// A request that is sent again, since a kept connection has been closed, has a signature of its own each time.
func TestSignedAgain(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{
		Engine: withSigning(nil),
	})
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
	if len(attempts) != 3 {
		t.Fatalf("%d attempts, want 3", len(attempts))
	}
	for _, r := range attempts {
		wantSigned(t, r, newTestKey(1), "string")
	}
	if attempts[1].URL.Path != attempts[2].URL.Path {
		t.Errorf("the attempts are for %s and %s", attempts[1].URL, attempts[2].URL)
	}
}

// requestOf returns the request in a frame.
func requestOf(frame *http2.MetaHeadersFrame) *http.Request {
	r := &http.Request{Header: http.Header{}, Method: frame.PseudoValue("method"), Host: frame.PseudoValue("authority"), RequestURI: frame.PseudoValue("path")}
	for _, f := range frame.RegularFields() {
		r.Header.Add(f.Name, f.Value)
	}
	r.URL, _ = r.URL.Parse("https://" + r.Host + r.RequestURI)
	return r
}

// Over HTTP/2 each attempt is signed anew, too, when an origin refuses a stream or ends the connection.
func TestSignedAgainHTTP2(t *testing.T) {
	authority, err := ca.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, refuse := range map[string]func(f *http2.Framer, stream uint32){
		"the stream is refused":   func(f *http2.Framer, stream uint32) { f.WriteRSTStream(stream, http2.ErrCodeRefusedStream) },
		"the connection is ended": func(f *http2.Framer, stream uint32) { f.WriteGoAway(0, http2.ErrCodeNo, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			g := proxytest.Start(t, proxytest.Options{
				Egress: func(e *proxy.Egress) { e.Roots.AddCert(authority.Certificate()) },
				Engine: withSigning(nil),
			})
			attempts := make(chan *http.Request, 10)
			var refused atomic.Bool
			url, _ := proxytest.StartHTTP2Origin(t, authority, func(f *http2.Framer, r *http2.MetaHeadersFrame) {
				attempts <- requestOf(r)
				if refused.CompareAndSwap(false, true) {
					refuse(f, r.StreamID)
					return
				}
				proxytest.WriteHead(f, r.StreamID, true, ":status", "200")
			})
			resp, _ := g.Get(url + "/x")
			proxytest.WantStatus(t, resp, 200)
			for range 2 {
				wantSigned(t, proxytest.Receive(t, attempts, "an attempt"), newTestKey(1), "string")
			}
		})
	}
}

// A request is signed when there is a connection: the time of the signature is not that of the request's arrival.
func TestSignedLate(t *testing.T) {
	authority, err := ca.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	g := proxytest.Start(t, proxytest.Options{
		Egress: func(e *proxy.Egress) { e.Roots.AddCert(authority.Certificate()) },
		Engine: withSigning(nil),
	})
	var ready atomic.Int64 // the time of the last handshake
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		begun := time.Now().Unix()
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for time.Now().Unix() == begun { // until the next second begins
			<-tick.C
		}
		ready.Store(time.Now().Unix())
		return authority.Leaf("127.0.0.1")
	}})
	if err != nil {
		t.Fatal(err)
	}
	created := make(chan [2]int64, 10)
	go http.Serve(l, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		_, rest, _ := strings.Cut(r.Header.Get("Signature-Input"), ";created=")
		digits, _, _ := strings.Cut(rest, ";")
		at, _ := strconv.ParseInt(digits, 10, 64)
		created <- [2]int64{at, ready.Load()}
	}))
	defer l.Close()
	g.Get("https://" + l.Addr().String() + "/x")
	for range 2 { // of robots.txt and the page
		if at := proxytest.Receive(t, created, "a request"); at[0] < at[1] {
			t.Errorf("signed at %d, and the connection is from %d", at[0], at[1])
		}
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

// Fetches of robots.txt are signed by the crawler whose request has caused them, each hop of a redirect for its own
// authority and path, also with another User-Agent. A refresh is signed by the crawler that is named.
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

// A failing key signs n times, and then no more.
type failingKey struct {
	testKey
	n *atomic.Int64
	f func() []byte
}

func (k failingKey) Sign(message []byte) []byte {
	if k.n.Add(-1) >= 0 {
		return k.testKey.Sign(message)
	}
	return k.f()
}

// If no signature can be made, the request fails with 500 and is not sent, in no version of HTTP, on new connections and on
// kept ones. That says nothing about the origin.
func TestNeverUnsigned(t *testing.T) {
	for name, f := range map[string]func() []byte{
		"nothing": func() []byte { return nil },
		"panic":   func() []byte { panic("the key is 0123456789abcdef") },
	} {
		t.Run(name, func(t *testing.T) {
			for _, kept := range []bool{false, true} {
				var signatures atomic.Int64
				g := proxytest.Start(t, proxytest.Options{
					Engine: func(c *policy.Config) {
						c.Crawlers.Known = append(c.Crawlers.Known, signingCrawler("ExampleBot", failingKey{newTestKey(1), &signatures, f}, nil))
					},
				})
				g.Ways(t, func(t *testing.T, v proxytest.Way) {
					for _, method := range []string{"GET", "POST"} {
						if signatures.Store(0); kept {
							signatures.Store(2)
							resp, _ := v.Get(t, "/first")
							proxytest.WantStatus(t, resp, 200)
							g.Next(t)
							signatures.Store(0)
						}
						g.TakeRequests()
						var body io.Reader
						if method == "POST" {
							body = strings.NewReader("a body")
						}
						resp, text := proxytest.Send(t, v.Client, method, v.Origin+"/second", body)
						proxytest.WantStatus(t, resp, 500)
						if !strings.Contains(text, "could not be signed") || strings.Contains(text, "0123456789abcdef") {
							t.Errorf("the answer is %s", text)
						}
						if x := g.Next(t); x.Signed != "" || strings.Contains(x.Error, "0123456789abcdef") || x.Status != 500 {
							t.Errorf("the record has Signed %q, Status %d, Error %q", x.Signed, x.Status, x.Error)
						}
						for _, r := range g.TakeRequests() {
							t.Errorf("%s %s was sent: %v", r.Method, r.RequestURI, r.Header)
						}
					}
					signatures.Store(2)
					resp, _ := v.Get(t, "/third")
					proxytest.WantStatus(t, resp, 200)
					g.Next(t)
				})
			}
		})
	}
}

// A transport that does not say when it has a connection sends nothing that counts as an answer.
func TestSignedByAnotherTransport(t *testing.T) {
	silent := proxy.Signing{Crawler: "a", Key: newTestKey(1), Agent: testAgent}.Transport(roundTripper(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Body: http.NoBody, Request: r}, nil
	}))
	r, _ := http.NewRequestWithContext(t.Context(), "GET", "http://a.example/", nil)
	if resp, err := silent.RoundTrip(r); !errors.Is(err, snapshot.ErrUnsigned) {
		t.Errorf("got %v, %v", resp, err)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// With Asked, requests are signed from the one after the answer with Accept-Signature on: for this crawler and this origin.
func TestSignedWhenAsked(t *testing.T) {
	const ask = `sig1=("@authority" "signature-agent");tag="web-bot-auth"`
	var asked proxy.AskedOrigins
	g := proxytest.Start(t, proxytest.Options{
		Engine: func(c *policy.Config) {
			change := func(s *proxy.Signing) { s.Asked = &asked }
			c.Crawlers.Known = []*policy.Crawler{signingCrawler("FirstBot", newTestKey(1), change), signingCrawler("SecondBot", newTestKey(2), change)}
		},
		Handler: func(rw http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/asks":
				rw.Header().Set("Accept-Signature", ask)
				rw.WriteHeader(http.StatusForbidden)
			case "/hints":
				rw.Header().Set("Accept-Signature", ask)
				rw.WriteHeader(http.StatusEarlyHints)
				rw.Header().Del("Accept-Signature")
			case "/other":
				rw.Header().Set("Accept-Signature", `sig1=("@authority");tag="other"`)
			}
		},
	})
	for _, step := range []struct {
		agent, url string
		key        byte // 0: none
	}{
		{"FirstBot/1.0", g.HTTP + "/plain", 0},
		{"FirstBot/1.0", g.HTTP + "/other", 0},
		{"FirstBot/1.0", g.HTTP + "/hints", 0},
		{"FirstBot/1.0", g.HTTP + "/asks", 0}, // it is not repeated
		{"FirstBot/1.0", g.HTTP + "/plain", 1},
		{"FirstBot/1.0", g.HTTP + "/asks", 1},
		{"FirstBot/1.0", g.HTTPS + "/plain", 0}, // another origin
		{"SecondBot/1.0", g.HTTP + "/plain", 0}, // another crawler
		{"SecondBot/1.0", g.HTTPS + "/asks", 0},
		{"SecondBot/1.0", g.HTTPS + "/plain", 2},
		{"FirstBot/1.0", g.HTTPS + "/plain", 0},
		{"Unknown/1.0", g.HTTPS + "/asks", 0},
		{"Unknown/1.0", g.HTTPS + "/plain", 0},
	} {
		resp := getAs(t, g, step.agent, step.url)
		if strings.HasSuffix(step.url, "/asks") && (resp.StatusCode != 403 || resp.Header.Get("Accept-Signature") != ask) {
			t.Errorf("%s: the client received %d, %v", step.url, resp.StatusCode, resp.Header)
		}
		pages := 0
		for _, r := range g.TakeRequests() {
			if r.URL.Path == "/robots.txt" {
				continue
			}
			pages++
			if step.key == 0 {
				wantUnsigned(t, r)
			} else {
				wantSigned(t, r, newTestKey(step.key), "string")
			}
		}
		if pages != 1 {
			t.Errorf("%s %s: %d requests arrived", step.agent, step.url, pages)
		}
	}
	// What a client sends is removed, also where nothing is set.
	req, _ := http.NewRequestWithContext(t.Context(), "GET", g.HTTPS+"/plain", nil)
	req.Header = http.Header{"User-Agent": {"FirstBot/1.0"}, "Signature": {"x"}, "Signature-Input": {"y"}, "Signature-Agent": {"z"}}
	resp, err := g.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	wantUnsigned(t, g.Last())
}

// A robots.txt that asks for signatures asks for them from the page on.
func TestSignedWhenRobotsAsks(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{
		Engine: withSigning(func(s *proxy.Signing) { s.Asked = new(proxy.AskedOrigins) }),
		RobotsTxt: func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Add("Accept-Signature", `a=("@authority");tag="other"`)
			rw.Header().Add("Accept-Signature", `b=()`)
		},
	})
	g.Get(g.HTTPS + "/page")
	all := g.TakeRequests()
	if len(all) != 2 {
		t.Fatalf("%d requests arrived", len(all))
	}
	wantUnsigned(t, all[0])
	wantSigned(t, all[1], newTestKey(1), "string")
}

// Other settings sign with other keys from the next request on. Each request is signed, by one key or the other.
func TestSignedAfterReload(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{Engine: withSigning(nil)})
	s := g.Proxy.Settings
	use := func(key testKey) {
		next := s
		next.Engine = s.Engine.Reconfigured(policy.Config{
			Crawlers: policy.Crawlers{Known: []*policy.Crawler{signingCrawler("ExampleBot", key, nil)}},
			Robots:   policy.DefaultRobots(), Transport: s.Upstream, Store: store.NewMemory(1 << 20), Log: slog.New(slog.DiscardHandler),
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
