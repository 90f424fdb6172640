package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"robotsgate/internal/ca"
	"robotsgate/internal/store"
	"robotsgate/policy"
)

// A world is a gate between two origins, one in clear and one in TLS, that both
// serve what handler says, and what they saw.
type world struct {
	t           *testing.T
	gate        *Proxy
	addr        string // of the gate
	http, https string // the origins
	roots       *x509.CertPool

	mu        sync.Mutex
	seen      []*http.Request
	exchanges []*Exchange
	done      chan *Exchange
	robots    string
}

// options may change a world's parts before it starts.
type options struct {
	gate    func(*Options)
	engine  func(*policy.Config)
	egress  func(*Egress)
	handler http.HandlerFunc
	robots  string
}

const exampleRobots = "User-agent: *\nDisallow: /private/\nAllow: /private/open\nCrawl-delay: 2.5\n"

func newWorld(t *testing.T, o options) *world {
	t.Helper()
	w := &world{t: t, roots: x509.NewCertPool(), robots: o.robots, done: make(chan *Exchange, 100)}
	if w.robots == "" {
		w.robots = exampleRobots
	}
	origin := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		w.seen = append(w.seen, r)
		w.mu.Unlock()
		if r.URL.Path == "/robots.txt" {
			io.WriteString(rw, w.robots)
			return
		}
		if o.handler != nil {
			o.handler(rw, r)
			return
		}
		fmt.Fprintf(rw, "hello from %s", r.RequestURI)
	})
	plain := httptest.NewServer(origin)
	secure := httptest.NewUnstartedServer(origin)
	secure.EnableHTTP2 = true
	secure.StartTLS()
	t.Cleanup(plain.Close)
	t.Cleanup(secure.Close)
	w.http, w.https = plain.URL, secure.URL

	originRoots := x509.NewCertPool()
	originRoots.AddCert(secure.Certificate())
	egress := Egress{
		AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Roots:        originRoots, DialTimeout: 5 * time.Second, ResponseHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute,
	}
	if o.egress != nil {
		o.egress(&egress)
	}
	upstream := NewUpstream(egress)
	t.Cleanup(upstream.Close)
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	config := policy.Config{
		Crawlers:  policy.Crawlers{Default: &policy.Crawler{Name: "default", Mode: policy.Enforce, DenyStatus: 403}},
		Robots:    policy.Robots{MaxAge: 24 * time.Hour, MinAge: 5 * time.Minute, StaleFor: 720 * time.Hour, AfterStale: "disallow", Timeout: 5 * time.Second, MaxBytes: 512 << 10, MaxRedirects: 5, CacheBytes: 1 << 20},
		Transport: upstream,
		Store:     store.NewMemory(1 << 20),
		Log:       log,
	}
	if o.engine != nil {
		o.engine(&config)
	}
	engine, err := policy.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(engine.Close)
	authority, err := ca.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w.roots.AddCert(authority.Certificate())
	remembered, err := policy.NewRemembered(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(remembered.Close)
	opts := Options{
		Remembered: remembered,
		Engine:     engine, Upstream: upstream, Leaf: authority.Leaf, CA: authority.PEM(),
		Passthrough:       func(string) bool { return false },
		UnreachableStatus: 403,
		Tags:              Tags{HTML: true, MaxHeadBytes: 512 << 10, HeadTimeout: 5 * time.Second},
		Limits:            Limits{MaxHeaderBytes: 64 << 10, HeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxConnections: 1000},
		Log:               log,
		Done: func(x *Exchange) {
			w.mu.Lock()
			w.exchanges = append(w.exchanges, x)
			w.mu.Unlock()
			w.done <- x
		},
	}
	if o.gate != nil {
		o.gate(&opts)
	}
	w.gate = New(opts)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.addr = l.Addr().String()
	served := make(chan error, 1)
	go func() { served <- w.gate.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		w.gate.Shutdown(ctx)
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return w
}

// client returns a client behind the gate.
func (w *world) client() *http.Client {
	tr := &http.Transport{
		Proxy:              http.ProxyURL(&url.URL{Scheme: "http", Host: w.addr}),
		TLSClientConfig:    &tls.Config{RootCAs: w.roots},
		ForceAttemptHTTP2:  true,
		DisableCompression: true,
	}
	w.t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// get fetches a URL as ExampleBot and returns the response with its body read.
func (w *world) get(url string, headers ...string) (*http.Response, string) {
	w.t.Helper()
	return w.do(http.MethodGet, url, nil, headers...)
}

func (w *world) do(method, url string, body io.Reader, headers ...string) (*http.Response, string) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), method, url, body)
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("User-Agent", "ExampleBot/1.0")
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	resp, err := w.client().Do(req)
	if err != nil {
		w.t.Fatalf("%s %s: %v", method, url, err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatalf("%s %s: %v", method, url, err)
	}
	return resp, string(b)
}

// arrived returns the requests that reached an origin, but for robots.txt.
func (w *world) arrived() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, r := range w.seen {
		if r.RequestURI != "/robots.txt" {
			out = append(out, r.Method+" "+r.RequestURI)
		}
	}
	return out
}

// last returns the latest request that reached an origin.
func (w *world) last() *http.Request {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen[len(w.seen)-1]
}

// raw sends bytes to the gate and returns all that it answers until it closes.
func (w *world) raw(request string) string {
	w.t.Helper()
	conn := w.dial()
	defer conn.Close()
	io.WriteString(conn, request)
	conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	answer, err := io.ReadAll(conn)
	if err != nil && len(answer) == 0 {
		w.t.Fatalf("%q: %v", request, err)
	}
	return string(answer)
}

func (w *world) dial() net.Conn {
	w.t.Helper()
	conn, err := net.Dial("tcp", w.addr)
	if err != nil {
		w.t.Fatal(err)
	}
	return conn
}

// tunnel opens a CONNECT to an origin and returns the connection.
func (w *world) tunnel(target string) net.Conn {
	w.t.Helper()
	conn := w.dial()
	fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", target, target)
	resp, err := http.ReadResponse(bufio.NewReaderSize(oneByte{conn}, 16), nil)
	if err != nil || resp.StatusCode != 200 {
		w.t.Fatalf("CONNECT %s: %v %v", target, resp, err)
	}
	return conn
}

// oneByte keeps a reader from taking more than it needs.
type oneByte struct{ io.Reader }

func (o oneByte) Read(p []byte) (int, error) { return o.Reader.Read(p[:1]) }

// secure speaks HTTP/1.1 over TLS inside a tunnel: one request, one answer.
func (w *world) secure(target, sni, request string) string {
	w.t.Helper()
	conn := tls.Client(w.tunnel(target), &tls.Config{RootCAs: w.roots, ServerName: sni})
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.WriteString(conn, request); err != nil {
		w.t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil && len(answer) == 0 {
		w.t.Fatal(err)
	}
	return string(answer)
}

func statusOf(answer string) string {
	line, _, _ := strings.Cut(answer, "\r\n")
	_, status, _ := strings.Cut(line, " ")
	code, _, _ := strings.Cut(status, " ")
	return code
}

func host(rawURL string) string {
	return strings.TrimPrefix(strings.TrimPrefix(rawURL, "https://"), "http://")
}

func wantStatus(t *testing.T, resp *http.Response, want int) {
	t.Helper()
	if resp.StatusCode != want {
		t.Errorf("status: got %d, want %d", resp.StatusCode, want)
	}
}

// wantHeader fails unless a header begins with want; "" wants none.
func wantHeader(t *testing.T, resp *http.Response, name, want string) {
	t.Helper()
	got := strings.Join(resp.Header.Values(name), " | ")
	if want == "" && got != "" || !strings.HasPrefix(got, want) {
		t.Errorf("%s: got %q, want %q", name, got, want)
	}
}

func wantArrived(t *testing.T, w *world, want ...string) {
	t.Helper()
	if got := w.arrived(); !slices.Equal(got, want) {
		t.Errorf("reached the origin: %q, want %q", got, want)
	}
}
