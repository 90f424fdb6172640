package proxy

import (
	"bytes"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"robotsgate/policy"
	"robotsgate/policy/glob"
	"robotsgate/proxy/internal/netconn"
)

// A parent is a proxy behind the gate. It leads every destination to the
// origins, whatever its name, and takes down what it was asked for.
type parent struct {
	url   *url.URL
	close func()

	mu      sync.Mutex
	origins map[string]string // by scheme
	log     []string          // "CONNECT example.com:443", "GET http://example.com/"
	auth    []string          // credentials, one for each of log
	headers []http.Header
	refuse  int    // answer everything with this status
	says    string // answer everything with these bytes; LOGIN stands for the login that was sent
}

// startParent starts a proxy of the scheme http, https or socks5 that wants
// credentials.
func startParent(t *testing.T, scheme string) *parent {
	t.Helper()
	p := &parent{}
	if scheme == "socks5" {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
				go p.socks(conn)
			}
		}()
		p.close = func() { l.Close() }
		p.url = &url.URL{Scheme: scheme, Host: l.Addr().String()}
	} else {
		s := httptest.NewUnstartedServer(p)
		if scheme == "https" {
			s.StartTLS()
		} else {
			s.Start()
		}
		p.close = s.Close
		p.url, _ = url.Parse(s.URL)
	}
	p.url.User = url.UserPassword("gate", "s3cret")
	t.Cleanup(p.close)
	return p
}

func (p *parent) leadTo(plain, secure string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.origins = map[string]string{"http": plain, "https": secure}
}

// note takes a request down and returns where the destination is to be found.
func (p *parent) note(request, auth string, h http.Header, scheme string) (address string, refuse int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.log, p.auth, p.headers = append(p.log, request), append(p.auth, auth), append(p.headers, h)
	return p.origins[scheme], p.refuse
}

func (p *parent) asked() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.log)
}

func (p *parent) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	_, encoded, _ := strings.Cut(r.Header.Get("Proxy-Authorization"), " ")
	auth, _ := base64.StdEncoding.DecodeString(encoded)
	scheme := "http"
	if r.Method == http.MethodConnect {
		scheme = "https"
	}
	address, refuse := p.note(r.Method+" "+r.RequestURI, string(auth), r.Header.Clone(), scheme)
	if p.says != "" {
		if conn, _, err := http.NewResponseController(rw).Hijack(); err == nil {
			login := r.Header.Get("Proxy-Authorization") + " " + string(auth)
			io.WriteString(conn, strings.ReplaceAll(p.says, "LOGIN", login))
			conn.Close()
		}
		return
	}
	if refuse != 0 {
		http.Error(rw, "refused", refuse)
		return
	}
	if r.Method == http.MethodConnect {
		origin, err := net.Dial("tcp", address)
		if err != nil {
			http.Error(rw, err.Error(), http.StatusBadGateway)
			return
		}
		conn, buf, err := http.NewResponseController(rw).Hijack()
		if err != nil {
			origin.Close()
			return
		}
		io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
		splice(conn, buf, origin)
		return
	}
	out := r.Clone(r.Context())
	out.RequestURI, out.URL.Host = "", address
	resp, err := http.DefaultTransport.RoundTrip(out)
	if err != nil {
		http.Error(rw, err.Error(), http.StatusBadGateway)
		return
	}
	defer resp.Body.Close()
	maps.Copy(rw.Header(), resp.Header)
	rw.WriteHeader(resp.StatusCode)
	io.Copy(rw, resp.Body)
}

func splice(client net.Conn, from io.Reader, origin net.Conn) {
	go func() {
		io.Copy(origin, from)
		netconn.CloseWrite(origin)
	}()
	io.Copy(client, origin)
	client.Close()
	origin.Close()
}

// socks speaks as much of RFC 1928 and 1929 as the gate needs.
func (p *parent) socks(conn net.Conn) {
	defer conn.Close()
	read := func(n int) []byte {
		b := make([]byte, n)
		if _, err := io.ReadFull(conn, b); err != nil {
			return make([]byte, n)
		}
		return b
	}
	read(int(read(2)[1]))    // the methods that the client offers
	conn.Write([]byte{5, 2}) // user name and password
	user := read(int(read(2)[1]))
	password := read(int(read(1)[0]))
	if p.says != "" {
		io.WriteString(conn, strings.ReplaceAll(p.says, "LOGIN", string(user)+":"+string(password)))
		return
	}
	conn.Write([]byte{1, 0})
	var host string
	switch request := read(4); request[3] {
	case 1:
		host = net.IP(read(4)).String()
	case 3:
		host = string(read(int(read(1)[0])))
	case 4:
		host = net.IP(read(16)).String()
	}
	port := read(2)
	number := strconv.Itoa(int(port[0])<<8 | int(port[1]))
	scheme := "http"
	if number == "443" {
		scheme = "https"
	}
	address, refuse := p.note("CONNECT "+net.JoinHostPort(host, number), string(user)+":"+string(password), nil, scheme)
	if refuse != 0 {
		conn.Write([]byte{5, 2, 0, 1, 0, 0, 0, 0, 0, 0})
		return
	}
	origin, err := net.Dial("tcp", address)
	if err != nil {
		conn.Write([]byte{5, 5, 0, 1, 0, 0, 0, 0, 0, 0})
		return
	}
	conn.Write([]byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0})
	splice(conn, conn, origin)
}

// Everything leaves through the parent, by name: whatever it is, plain, TLS or a
// tunnel that is not opened.
func TestParent(t *testing.T) {
	for _, scheme := range []string{"http", "https", "socks5"} {
		t.Run(scheme, func(t *testing.T) {
			p := startParent(t, scheme)
			w := newWorld(t, options{
				parent: p,
				egress: func(e *Egress) { e.AllowPrivate = nil }, // the parent's own address needs no permission
				gate: func(o *Options) {
					o.Settings.Passthrough = func(host string) bool { return host == "unseen.example.com" }
				},
			})
			w.http, w.https = "http://away.example.com", "https://away.example.com"
			w.ways(t, func(t *testing.T, v way) {
				resp, body := v.get(t, "/a")
				wantStatus(t, resp, 200)
				if body != "hello from /a" {
					t.Errorf("body: got %q", body)
				}
				resp, _ = v.get(t, "/private/")
				wantStatus(t, resp, 403)
				wantHeader(t, resp, headerDecision, "deny;reason=rule")
			})
			wantArrived(t, w, "GET /a", "GET /a", "GET /a")
			before := len(p.asked())
			conn := tls.Client(w.tunnel("unseen.example.com:443"), &tls.Config{RootCAs: w.originRoots, ServerName: "unseen.example.com"})
			defer conn.Close()
			io.WriteString(conn, "GET /private/ HTTP/1.1\r\nHost: unseen.example.com\r\nConnection: close\r\n\r\n")
			if answer, err := io.ReadAll(conn); statusOf(string(answer)) != "200" {
				t.Errorf("inside the tunnel: %q, %v", answer, err)
			}
			if n := len(p.asked()) - before; n != 2 { // robots.txt, and the tunnel itself
				t.Errorf("the parent was asked %d times on behalf of a tunnel, want 2", n)
			}
			want := []string{"CONNECT away.example.com:80", "CONNECT away.example.com:443", "CONNECT unseen.example.com:443"}
			if scheme != "socks5" {
				want = append(want[1:], "GET http://away.example.com/robots.txt", "GET http://away.example.com/a")
			}
			for _, line := range want {
				if !slices.Contains(p.asked(), line) {
					t.Errorf("the parent was not asked for %q, only for %q", line, p.asked())
				}
			}
			for i, auth := range p.auth {
				if auth != "gate:s3cret" {
					t.Errorf("%s: credentials %q", p.log[i], auth)
				}
			}
			// The gate adds nothing of its own, here neither.
			for i, h := range p.headers {
				if strings.HasPrefix(p.log[i], "CONNECT") && h.Get("User-Agent") != "" {
					t.Errorf("%s: User-Agent %q", p.log[i], h.Get("User-Agent"))
				}
			}
		})
	}
}

// A parent is no way round the guard, as far as the gate can see.
func TestParentKeepsTheGuard(t *testing.T) {
	for _, scheme := range []string{"http", "socks5"} {
		t.Run(scheme, func(t *testing.T) {
			p := startParent(t, scheme)
			w := newWorld(t, options{
				parent: p,
				egress: func(e *Egress) { e.AllowPrivate = nil },
				gate: func(o *Options) {
					o.Settings.Passthrough = func(host string) bool { return strings.HasPrefix(host, "10.") }
				},
			})
			for _, host := range []string{"127.0.0.1", "169.254.169.254", "[::1]", "[::ffff:192.168.0.1]", "localhost", "loop.example.com", "metadata.example.com", "mixed.example.com", host(p.url.Host)} {
				for _, scheme := range []string{"http://", "https://"} {
					resp, _ := w.get(scheme + host + "/")
					wantStatus(t, resp, 403)
					wantHeader(t, resp, proxyStatus, "robotsgate;error=destination_ip_prohibited")
				}
			}
			if answer := w.raw("CONNECT 10.0.0.1:443 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); statusOf(answer) != "403" {
				t.Errorf("a tunnel to 10.0.0.1: %s", answer)
			}
			if asked := p.asked(); len(asked) > 0 {
				t.Errorf("the parent was asked for %q", asked)
			}
		})
	}
}

func TestParentIsDown(t *testing.T) {
	for _, scheme := range []string{"http", "https", "socks5"} {
		t.Run(scheme, func(t *testing.T) {
			p := startParent(t, scheme)
			w := newWorld(t, options{parent: p, egress: func(e *Egress) { e.AllowPrivate = nil },
				engine: allowHost(t, "unseen.example.com"),
				gate: func(o *Options) {
					o.Settings.Passthrough = func(host string) bool { return host == "unseen.example.com" }
				}})
			known := "http://known.example.com/"
			if resp, _ := w.get(known); resp.StatusCode != 200 {
				t.Fatalf("got %d while the parent is up", resp.StatusCode)
			}
			p.close()
			http.DefaultTransport.(*http.Transport).CloseIdleConnections()
			w.transport.Close()
			resp, _ := w.get(known)
			wantStatus(t, resp, 502)
			wantHeader(t, resp, headerDecision, "allow;reason=no-match")
			for _, url := range []string{"http://new.example.com/", "https://new.example.com/"} {
				resp, body := w.get(url)
				wantStatus(t, resp, 403)
				wantHeader(t, resp, headerDecision, "deny;reason=unreachable")
				if !strings.Contains(body, "parent proxy") {
					t.Errorf("the refusal blames the origin: %s", body)
				}
			}
			answer := w.raw("CONNECT unseen.example.com:443 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
			if statusOf(answer) != "502" || !strings.Contains(answer, headerDecision+": allow;reason=override") {
				t.Errorf("a tunnel: %s", answer)
			}
		})
	}
}

func TestParentRefuses(t *testing.T) {
	for _, scheme := range []string{"http", "https", "socks5"} {
		t.Run(scheme, func(t *testing.T) {
			p := startParent(t, scheme)
			p.refuse = http.StatusBadGateway
			w := newWorld(t, options{parent: p, engine: allowHost(t, "unseen.example.com"),
				gate: func(o *Options) {
					o.Settings.Passthrough = func(host string) bool { return host == "unseen.example.com" }
				}})
			for _, url := range []string{"http://new.example.com/", "https://new.example.com/"} {
				resp, body := w.get(url)
				wantStatus(t, resp, 403)
				wantHeader(t, resp, headerDecision, "deny;reason=unreachable")
				if strings.Contains(body, "s3cret") {
					t.Errorf("the refusal tells the parent's password: %s", body)
				}
			}
			answer := w.raw("CONNECT unseen.example.com:443 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
			if statusOf(answer) != "502" || strings.Contains(answer, "s3cret") {
				t.Errorf("a tunnel: %s", answer)
			}
			if x := w.exchanges[len(w.exchanges)-1]; x.Error == "" || strings.Contains(x.Error, "s3cret") {
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
			p := startParent(t, scheme)
			w := newWorld(t, options{parent: p, engine: allowHost(t, "unseen.example.com"), gate: func(o *Options) {
				o.Settings.Passthrough = func(host string) bool { return host == "unseen.example.com" }
			}})
			known := "http://known.example.com"
			if resp, _ := w.get(known + "/private/x"); resp.StatusCode != 403 {
				t.Fatalf("got %d while the parent is content", resp.StatusCode)
			}
			set := func(status int) {
				p.mu.Lock()
				defer p.mu.Unlock()
				p.refuse = status
			}
			set(http.StatusProxyAuthRequired)
			resp, _ := w.get(known + "/")
			wantStatus(t, resp, 502)
			wantHeader(t, resp, headerDecision, "allow;reason=no-match")
			wantHeader(t, resp, "Proxy-Status", `robotsgate;error=proxy_configuration_error;details="it answered 407 Proxy Authentication Required: the login in egress.proxy is missing or wrong"`)
			for _, url := range []string{"http://new.example.com/private/x", "https://new.example.com/private/x"} {
				resp, body := w.get(url)
				wantStatus(t, resp, 403)
				wantHeader(t, resp, headerDecision, "deny;reason=unreachable")
				if !strings.Contains(body, "egress.proxy") {
					t.Errorf("the refusal does not say where to look: %s", body)
				}
			}
			answer := w.raw("CONNECT unseen.example.com:443 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
			if statusOf(answer) != "502" || !strings.Contains(answer, "error=proxy_configuration_error") {
				t.Errorf("a tunnel: %s", answer)
			}
			set(0)
			resp, _ = w.get(known + "/private/x")
			wantHeader(t, resp, headerDecision, "deny;reason=rule")
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
				p := startParent(t, scheme)
				p.says = says
				var said bytes.Buffer
				var mu sync.Mutex
				log := slog.New(slog.NewTextHandler(lockedWriter{&mu, &said}, &slog.HandlerOptions{Level: slog.LevelDebug}))
				w := newWorld(t, options{
					parent: p,
					egress: func(e *Egress) { e.AllowPrivate = nil },
					engine: func(c *policy.Config) {
						allowHost(t, "unseen.example.com")(c)
						allowHost(t, "open.example.com")(c)
						c.Log = log
					},
					gate: func(o *Options) {
						o.Log = log
						o.Settings.Passthrough = func(host string) bool { return host == "unseen.example.com" }
					}})
				var answers []string
				for _, url := range []string{"http://new.example.com/", "https://new.example.com/", "https://open.example.com/"} {
					for _, accept := range []string{"*/*", "text/html"} {
						resp, body := w.get(url, "Accept", accept)
						answers = append(answers, fmt.Sprint(url, " ", resp.Status, resp.Header, body))
						if resp.StatusCode < 400 && strings.HasPrefix(url, "https:") {
							t.Errorf("%s: %s", url, resp.Status)
						}
					}
				}
				// What a parent answers to a request in clear is a response of the origin's, and so is
				// its content; only an answer that is not understood is worded by the gate.
				resp, _ := w.get("http://open.example.com/")
				answers = append(answers, fmt.Sprint("http://open.example.com/ ", resp.Status, resp.Header.Get(proxyStatus)))
				answers = append(answers, w.raw("CONNECT unseen.example.com:443 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"))
				w.mu.Lock()
				for _, x := range w.exchanges {
					answers = append(answers, "record: "+x.Error)
					if d := x.Decision; d != nil && d.Robots != nil {
						answers = append(answers, "snapshot: "+d.Robots.Snapshot.Error)
					}
				}
				w.mu.Unlock()
				mu.Lock()
				answers = append(answers, "log: "+said.String())
				mu.Unlock()
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

// A lockedWriter may be written to by several goroutines.
type lockedWriter struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

// allowHost is an override by which no robots.txt is asked for.
func allowHost(t *testing.T, name string) func(*policy.Config) {
	g, err := glob.Host(name)
	if err != nil {
		t.Fatal(err)
	}
	return func(c *policy.Config) {
		c.Overrides = append(c.Overrides, policy.Override{Hosts: []glob.Glob{g}, Action: policy.Allow, Reason: "a test"})
	}
}

// NewTransport refuses a parent that it cannot speak to, instead of speaking plain HTTP to it.
func TestParentScheme(t *testing.T) {
	for _, scheme := range []string{"", "ftp", "socks4", "socks5h"} {
		if _, err := NewTransport(Egress{Parent: &url.URL{Scheme: scheme, Host: "parent.example"}}, nil); err == nil {
			t.Errorf("the scheme %q is accepted", scheme)
		}
	}
}
