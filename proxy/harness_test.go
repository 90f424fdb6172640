package proxy

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"robotsgate/internal/ca"
	"robotsgate/internal/store"
	"robotsgate/policy"
	"robotsgate/policy/snapshot"
	"robotsgate/policy/tagcache"
	"robotsgate/proxy/internal/header"
)

const proxyStatus = header.Status

var quietLog = slog.New(slog.DiscardHandler)

// patience bounds every wait for something that should come at once.
const patience = 10 * time.Second

// names is all that resolves in these tests, beside what /etc/hosts says. The
// origins' certificate is for every name below example.com.
var names = map[string][]string{
	"loop.example.com.":          {"127.0.0.1"},
	"second.example.com.":        {"127.0.0.1"},
	"a_b.example.com.":           {"127.0.0.1"},
	"xn--bcher-kva.example.com.": {"127.0.0.1"},
	"metadata.example.com.":      {"169.254.169.254"},
	"mixed.example.com.":         {"10.9.9.9", "127.0.0.1"},
}

// changing is the address of changing.example.com, which a test may change between two lookups.
var changing atomic.Pointer[string]

// lookupsFail makes all lookups fail because there is no file descriptor for them.
var lookupsFail atomic.Bool

// lookups has the names that have been looked up, each with a dot at its end.
var lookups sync.Map

// TestMain keeps the tests from asking the machine's DNS.
func TestMain(m *testing.M) {
	log.SetOutput(io.Discard) // Transport's: it quotes what origins send unasked
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		if lookupsFail.Load() {
			return nil, &net.OpError{Op: "dial", Net: "udp", Err: os.NewSyscallError("socket", syscall.EMFILE)}
		}
		client, server := net.Pipe()
		go resolve(server)
		return client, nil
	}}
	m.Run()
}

// resolve answers one question as a DNS server does over TCP.
func resolve(conn net.Conn) {
	defer conn.Close()
	var length [2]byte
	if _, err := io.ReadFull(conn, length[:]); err != nil {
		return
	}
	query := make([]byte, int(length[0])<<8|int(length[1]))
	if _, err := io.ReadFull(conn, query); err != nil {
		return
	}
	var msg dnsmessage.Message
	if err := msg.Unpack(query); err != nil || len(msg.Questions) != 1 {
		return
	}
	q := msg.Questions[0]
	lookups.Store(q.Name.String(), true)
	msg.Header = dnsmessage.Header{ID: msg.ID, Response: true, RecursionAvailable: true}
	msg.Additionals = nil
	addrs, known := names[q.Name.String()]
	if now := changing.Load(); now != nil && q.Name.String() == "changing.example.com." {
		addrs, known = []string{*now}, true
	}
	if !known {
		msg.RCode = dnsmessage.RCodeNameError
	}
	for _, a := range addrs {
		if q.Type == dnsmessage.TypeA {
			msg.Answers = append(msg.Answers, dnsmessage.Resource{
				Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class},
				Body:   &dnsmessage.AResource{A: netip.MustParseAddr(a).As4()},
			})
		}
	}
	answer, err := msg.Pack()
	if err != nil {
		return
	}
	conn.Write(append([]byte{byte(len(answer) >> 8), byte(len(answer))}, answer...))
}

// A world is a gate between two origins, one in clear and one in TLS, that both
// serve what handler says, and what they saw.
type world struct {
	t           *testing.T
	gate        *Proxy
	addr        string         // of the gate
	http, https string         // the origins
	roots       *x509.CertPool // with the gate's CA
	transport   *Transport
	descriptors *Descriptors   // of transport
	originRoots *x509.CertPool // of the origin in TLS, which only passed-through clients see

	mu        sync.Mutex
	seen      []*http.Request
	exchanges []*Record
	done      chan *Record
	robots    string
	forget    bool // what was seen, which would take up memory
}

// options may change a world's parts before it starts.
type options struct {
	gate     func(*Options)
	engine   func(*policy.Config)
	egress   func(*Egress)
	upstream func(Upstream) Upstream // wraps the transport
	// descriptors bound the connections to origins; nil: no bound.
	descriptors *Descriptors
	handler     http.HandlerFunc
	robots      string
	// robotsTxt serves robots.txt instead of handing out robots.
	robotsTxt http.HandlerFunc
	parent    *parent // the proxy that all goes through
	listen    string  // address; default: a port of 127.0.0.1
}

// publicRoots stands for the system's in the gate's bundle.
const publicRoots = "the system's roots\n"

const exampleRobots = "User-agent: *\nDisallow: /private/\nAllow: /private/open\nCrawl-delay: 2.5\n"

func newWorld(t *testing.T, o options) *world {
	t.Helper()
	w := &world{t: t, roots: x509.NewCertPool(), robots: o.robots, done: make(chan *Record, 100)}
	if w.robots == "" {
		w.robots = exampleRobots
	}
	origin := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		if !w.forget {
			w.seen = append(w.seen, r)
		}
		w.mu.Unlock()
		switch {
		case r.URL.Path == "/robots.txt" && o.robotsTxt != nil:
			o.robotsTxt(rw, r)
			return
		case r.URL.Path == "/robots.txt":
			io.WriteString(rw, w.robots)
			return
		}
		if o.handler != nil {
			o.handler(rw, r)
			return
		}
		fmt.Fprintf(rw, "hello from %s", r.RequestURI)
	})
	plain, secure := httptest.NewUnstartedServer(origin), httptest.NewUnstartedServer(origin)
	for _, s := range []*httptest.Server{plain, secure} {
		s.Config.ErrorLog = log.New(io.Discard, "", 0) // connections that break off are part of the tests
	}
	plain.Start()
	secure.EnableHTTP2 = true
	secure.StartTLS()
	t.Cleanup(plain.Close)
	t.Cleanup(secure.Close)
	w.http, w.https = plain.URL, secure.URL

	w.originRoots = x509.NewCertPool()
	w.originRoots.AddCert(secure.Certificate())
	egress := Egress{
		AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Roots:        w.originRoots, DialTimeout: 5 * time.Second, ResponseHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute,
	}
	if o.parent != nil {
		o.parent.leadTo(host(plain.URL), host(secure.URL))
		egress.Parent = o.parent.url
	}
	if o.egress != nil {
		o.egress(&egress)
	}
	w.descriptors = o.descriptors
	if w.descriptors == nil {
		w.descriptors = &Descriptors{}
	}
	var err error
	if w.transport, err = NewTransport(egress, w.descriptors); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.transport.Close)
	upstream := Upstream(w.transport)
	if o.upstream != nil {
		upstream = o.upstream(upstream)
	}
	logger := slog.New(slog.NewTextHandler(t.Output(), nil))
	config := policy.Config{
		Crawlers: policy.Crawlers{Default: &policy.Crawler{Name: "default", Mode: policy.Enforce, DenyStatus: 403}},
		Robots: policy.Robots{Settings: snapshot.Settings{MaxAge: 24 * time.Hour, MinAge: 5 * time.Minute, StaleFor: 720 * time.Hour,
			AfterStale: "disallow", Timeout: 5 * time.Second, MaxBytes: 512 << 10, MaxRedirects: 5, CacheBytes: 1 << 20}},
		Transport: upstream,
		Store:     store.NewMemory(1 << 20),
		Log:       logger,
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
	remembered, err := tagcache.New(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(remembered.Close)
	opts := Options{
		Settings: Settings{
			Engine: engine, Upstream: upstream,
			Passthrough:      func(string) bool { return false },
			Tags:             Tags{HTML: true, MaxHeadBytes: 512 << 10, HeadTimeout: 5 * time.Second},
			ConnectionLimits: ConnectionLimits{MaxConnections: 1000},
		},
		Remembered: remembered, Leaf: authority.Leaf, CA: authority.PEM, Bundle: func() []byte { return authority.Bundle([]byte(publicRoots)) },
		Limits: Limits{MaxHeaderBytes: 64 << 10, HeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute},
		Log:    logger,
		Done: func(x *Record) {
			w.mu.Lock()
			w.exchanges = append(w.exchanges, x)
			w.mu.Unlock()
			w.done <- x
		},
	}
	if o.gate != nil {
		o.gate(&opts)
	}
	if w.gate, err = New(opts); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", cmp.Or(o.listen, "127.0.0.1:0"))
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

// client returns a client behind the gate. It speaks HTTP/2 inside TLS.
func (w *world) client() *http.Client { return w.clientVia("http", w.addr, true) }

// clientVia returns a client whose proxy is the gate, reached by this scheme
// and address.
func (w *world) clientVia(scheme, addr string, http2 bool) *http.Client {
	var p http.Protocols
	p.SetHTTP1(true)
	p.SetHTTP2(http2)
	tr := &http.Transport{
		Proxy:              http.ProxyURL(&url.URL{Scheme: scheme, Host: addr}),
		TLSClientConfig:    &tls.Config{RootCAs: w.roots},
		Protocols:          &p,
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
	return send(w.t, w.client(), method, url, body, headers...)
}

// send makes a request as ExampleBot and returns the response with its body read.
func send(t *testing.T, client *http.Client, method, url string, body io.Reader, headers ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("User-Agent", "ExampleBot/1.0")
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	return resp, string(b)
}

// A way is how requests reach the gate: in clear, or inside a tunnel in either
// version of HTTP.
type way struct {
	name   string
	origin string
	client *http.Client
}

// ways runs a test over each of them: all must be treated alike.
func (w *world) ways(t *testing.T, f func(t *testing.T, v way)) {
	t.Helper()
	for _, v := range []way{
		{"http", w.http, w.clientVia("http", w.addr, false)},
		{"https HTTP/1.1", w.https, w.clientVia("http", w.addr, false)},
		{"https HTTP/2", w.https, w.clientVia("http", w.addr, true)},
	} {
		t.Run(v.name, func(t *testing.T) {
			f(t, v)
			v.client.CloseIdleConnections()
		})
	}
}

func (v way) get(t *testing.T, path string, headers ...string) (*http.Response, string) {
	t.Helper()
	return send(t, v.client, http.MethodGet, v.origin+path, nil, headers...)
}

// next returns the record of the next exchange that ends.
func (w *world) next(t *testing.T) *Record {
	t.Helper()
	return receive(t, w.done, "the record of an exchange")
}

// receive waits for what a channel brings.
func receive[T any](t *testing.T, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("%s did not come", what)
		panic("unreachable")
	}
}

// eventually waits for a condition that no channel tells of.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	within(t, patience, what, holds)
}

// within is eventually for much work, which takes long under the race detector on a busy machine.
func within(t *testing.T, d time.Duration, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(d); !holds(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("not so within %v: %s", d, what)
		}
	}
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

// count returns how many requests reached an origin, those for robots.txt included.
func (w *world) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.seen)
}

// raw sends bytes to the gate and returns its answer: one response, or all that
// comes where the gate closes the connection behind it.
func (w *world) raw(request string) string {
	w.t.Helper()
	conn := w.dial()
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(patience))
	io.WriteString(conn, request)
	return readAnswer(w.t, conn, request)
}

func readAnswer(t *testing.T, conn net.Conn, request string) string {
	t.Helper()
	var answer bytes.Buffer
	method, _, _ := strings.Cut(request, " ")
	resp, err := http.ReadResponse(bufio.NewReader(io.TeeReader(conn, &answer)), &http.Request{Method: method})
	if err == nil {
		_, err = io.Copy(io.Discard, resp.Body)
	}
	if err == nil && !resp.Close {
		return answer.String()
	}
	io.Copy(&answer, conn)
	if answer.Len() == 0 {
		t.Fatalf("%q: no answer: %v", request, err)
	}
	return answer.String()
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
	conn.SetDeadline(time.Now().Add(patience))
	defer conn.SetDeadline(time.Time{})
	resp, err := readHead(conn)
	if err != nil || resp.StatusCode != 200 {
		w.t.Fatalf("CONNECT %s: %v %v", target, resp, err)
	}
	return conn
}

// readHead reads a response's head and not a byte more.
func readHead(conn net.Conn) (*http.Response, error) {
	return http.ReadResponse(bufio.NewReaderSize(oneByte{conn}, 16), &http.Request{Method: http.MethodConnect})
}

// oneByte keeps a reader from taking more than it needs.
type oneByte struct{ io.Reader }

func (o oneByte) Read(p []byte) (int, error) { return o.Reader.Read(p[:1]) }

// secure speaks HTTP/1.1 over TLS inside a tunnel: one request, one answer.
func (w *world) secure(target, sni, request string) string {
	w.t.Helper()
	conn := tls.Client(w.tunnel(target), &tls.Config{RootCAs: w.roots, ServerName: sni})
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(conn, request); err != nil {
		w.t.Fatal(err)
	}
	return readAnswer(w.t, conn, request)
}

// http2 speaks HTTP/2 over TLS inside a tunnel.
func (w *world) http2(t *testing.T, target, sni string) *http.ClientConn {
	t.Helper()
	var p http.Protocols
	p.SetHTTP2(true)
	tr := &http.Transport{Protocols: &p, DialTLSContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		conn := tls.Client(w.tunnel(target), &tls.Config{RootCAs: w.roots, ServerName: sni, NextProtos: []string{"h2"}})
		return conn, conn.HandshakeContext(ctx)
	}}
	cc, err := tr.NewClientConn(t.Context(), "https", target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cc.Close() })
	return cc
}

// wantClosed fails unless the gate ends the connection, saying no more than that
// the request was bad.
func wantClosed(t *testing.T, conn net.Conn) {
	t.Helper()
	conn.SetReadDeadline(time.Now().Add(patience))
	rest, err := io.ReadAll(conn)
	if code := statusOf(string(rest)); code != "" && code != "400" || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the connection is not closed: read %q, %v", rest, err)
	}
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
