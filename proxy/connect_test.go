package proxy_test

import (
	"bufio"
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"robotsgate/policy"
	"robotsgate/policy/glob"
	"robotsgate/proxy"
	"robotsgate/proxy/internal/proxytest"
)

// eager sends the head of a CONNECT together with what comes first inside it.
type eager struct {
	net.Conn
	head string
	once sync.Once
}

func (e *eager) Write(p []byte) (int, error) {
	if e.head == "" {
		return e.Conn.Write(p)
	}
	both := append([]byte(e.head), p...)
	e.head = ""
	_, err := e.Conn.Write(both)
	return len(p), err
}

func (e *eager) Read(p []byte) (n int, err error) {
	e.once.Do(func() { _, err = proxytest.ReadHead(e.Conn) })
	if err != nil {
		return 0, err
	}
	return e.Conn.Read(p)
}

// connectWith sends the head of a CONNECT, alone or together with what comes first inside it.
func connectWith(t *testing.T, conn net.Conn, head string, together bool) net.Conn {
	t.Helper()
	if together {
		return &eager{Conn: conn, head: head}
	}
	io.WriteString(conn, head)
	if resp, err := proxytest.ReadHead(conn); err != nil || resp.StatusCode != 200 || len(resp.Header) > 0 {
		t.Fatalf("CONNECT: %v %v", resp, err)
	}
	return conn
}

// pieces sends every byte on its own.
type pieces struct{ net.Conn }

func (c pieces) Write(p []byte) (int, error) {
	for i := range p {
		if n, err := c.Conn.Write(p[i : i+1]); err != nil {
			return i + n, err
		}
	}
	return len(p), nil
}

// Whatever the form of CONNECT, and however the bytes come, what is inside is
// served: several requests, each judged by its path.
func TestConnect(t *testing.T) {
	for _, c := range []struct {
		name, head string // %s: host and port
		together   bool
		pieces     bool
	}{
		{name: "usual", head: "CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\n\r\n"},
		{name: "HTTP/1.0 without any header", head: "CONNECT %s HTTP/1.0\r\n\r\n"},
		{name: "Host without port", head: "CONNECT %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"},
		{name: "Host of another", head: "CONNECT %s HTTP/1.1\r\nHost: other.example\r\n\r\n"},
		{name: "Connection: close", head: "CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\nConnection: close\r\n\r\n"},
		{name: "Proxy-Connection: close", head: "CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\nProxy-Connection: close\r\n\r\n"},
		{name: "with a length", head: "CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\nContent-Length: 0\r\n\r\n"},
		{name: "together with the ClientHello", head: "CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\n\r\n", together: true},
		{name: "together, HTTP/1.0", head: "CONNECT %s HTTP/1.0\r\n\r\n", together: true},
		{name: "in pieces", head: "CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\n\r\n", pieces: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := proxytest.Start(t, proxytest.Options{})
			conn := dialed(t, g.Addr)
			if c.pieces {
				conn = pieces{conn}
			}
			conn = connectWith(t, conn, fmt.Sprintf(c.head, proxytest.Host(g.HTTPS)), c.together)
			inside := tls.Client(conn, &tls.Config{RootCAs: g.Roots, ServerName: "127.0.0.1"})
			r := bufio.NewReader(inside)
			for _, step := range []struct {
				path string
				want int
			}{{"/1", 200}, {"/private/2", 403}, {"/3", 200}} {
				fmt.Fprintf(inside, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", step.path, proxytest.Host(g.HTTPS))
				resp, err := http.ReadResponse(r, nil)
				if err != nil {
					t.Fatal(err)
				}
				proxytest.WantStatus(t, resp, step.want)
				if _, err := io.Copy(io.Discard, resp.Body); err != nil {
					t.Fatal(err)
				}
			}
			proxytest.WantArrived(t, g, "GET /1", "GET /3")
		})
	}
}

func TestConnectTargets(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{})
	for _, target := range []string{"example.com", "example.com:", ":443", "127.0.0.1", "[::1]", "example.com:0", "example.com:65536", "example.com:https",
		"user@example.com:443", "user:pw@example.com:443", "[::1", "[fe80::1%25eth0]:443", "::1:443", "0x7f.1:443", "exa%6dple.com:443", "/", "*", "https://example.com", "a b:443"} {
		answer := g.Raw("CONNECT " + target + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		if proxytest.StatusOf(answer) != "400" {
			t.Errorf("CONNECT %s: got %q, want a 400", target, answer)
		}
	}
	if n := g.Count(); n > 0 {
		t.Errorf("%d requests reached an origin", n)
	}
}

func TestConnectIPv6(t *testing.T) {
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Skip("this machine has no IPv6: ", err)
	}
	origin := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			io.WriteString(rw, proxytest.ExampleRobots)
			return
		}
		fmt.Fprint(rw, r.Host)
	}))
	origin.Listener.Close()
	origin.Listener = l
	origin.StartTLS()
	defer origin.Close()
	g := proxytest.Start(t, proxytest.Options{Egress: func(e *proxy.Egress) { e.AllowPrivate = []netip.Prefix{netip.MustParsePrefix("::1/128")} }})
	for path, want := range map[string]int{"/": 200, "/private/": 403} {
		resp, body := g.Get(origin.URL + path)
		proxytest.WantStatus(t, resp, want)
		if want == 200 && body != proxytest.Host(origin.URL) {
			t.Errorf("Host: got %q, want %q", body, proxytest.Host(origin.URL))
		}
	}
}

// A client that says nothing in its tunnel, or stops in the middle, is not
// waited for without end.
func TestSilentTunnel(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{Proxy: func(o *proxy.Options) { o.Limits.HeaderTimeout = 300 * time.Millisecond }})
	t.Run("silences", func(t *testing.T) { // ends when all of them have
		for name, said := range map[string]string{
			"nothing":               "",
			"a byte of TLS":         "\x16",
			"half a ClientHello":    "\x16\x03\x01\x02\x00\x01\x00",
			"half a request's head": "GET / HTTP/1.1\r\nHos",
			"a head without an end": "GET / HTTP/1.1\r\nHost: x\r\n",
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				conn := g.Tunnel(proxytest.Host(g.HTTPS))
				defer conn.Close()
				io.WriteString(conn, said)
				proxytest.WantClosed(t, conn)
			})
		}
		t.Run("TLS, then nothing", func(t *testing.T) {
			t.Parallel()
			conn := tls.Client(g.Tunnel(proxytest.Host(g.HTTPS)), &tls.Config{RootCAs: g.Roots, ServerName: "127.0.0.1"})
			defer conn.Close()
			conn.Handshake()
			proxytest.WantClosed(t, conn)
		})
	})
	if n := g.Count(); n > 0 {
		t.Errorf("%d requests reached an origin", n)
	}
}

// What is neither TLS nor HTTP gets an answer that ends.
func TestGarbageInTunnel(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{})
	for _, garbage := range []string{"\x00\x01\x02\x03\r\n\r\n", "SSH-2.0-OpenSSH_9.6\r\n\r\n", "\r\n\r\n\r\n", "HELO mail.example\r\n\r\n"} {
		conn := g.Tunnel(proxytest.Host(g.HTTPS))
		conn.SetDeadline(time.Now().Add(proxytest.Patience))
		io.WriteString(conn, garbage)
		answer, err := io.ReadAll(conn)
		if proxytest.StatusOf(string(answer)) != "400" || err != nil {
			t.Errorf("%q: got %q, %v, want a 400 and the end", garbage, answer, err)
		}
		conn.Close()
	}
	// TLS that is none: an alert, and the end.
	conn := g.Tunnel(proxytest.Host(g.HTTPS))
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(proxytest.Patience))
	io.WriteString(conn, "\x16\x03\x01\x00\x05hello")
	if answer, err := io.ReadAll(conn); err != nil || len(answer) > 0 && answer[0] != 0x15 {
		t.Errorf("broken TLS: got %q, %v", answer, err)
	}
	if n := g.Count(); n > 0 {
		t.Errorf("%d requests reached an origin", n)
	}
}

// Some clients open a tunnel for http too, and speak HTTP in clear in it.
func TestClearTextInTunnel(t *testing.T) {
	for _, together := range []bool{false, true} {
		g := proxytest.Start(t, proxytest.Options{})
		target := proxytest.Host(g.HTTP)
		conn := connectWith(t, dialed(t, g.Addr), "CONNECT "+target+" HTTP/1.1\r\nHost: "+target+"\r\nConnection: close\r\n\r\n", together)
		r := bufio.NewReader(conn)
		for _, step := range []struct {
			request string
			want    int
		}{
			{"GET /1 HTTP/1.1\r\nHost: " + target + "\r\n\r\n", 200},
			{"GET /private/2 HTTP/1.1\r\nHost: " + target + "\r\n\r\n", 403},
			{"GET " + g.HTTP + "/3 HTTP/1.1\r\nHost: " + target + "\r\n\r\n", 200},
			{"GET /4 HTTP/1.1\r\nHost: other.example\r\n\r\n", 421},
			{"GET http://other.example/5 HTTP/1.1\r\nHost: " + target + "\r\n\r\n", 400},
			{"GET " + g.HTTPS + "/6 HTTP/1.1\r\nHost: " + target + "\r\n\r\n", 400},
			{"GET /7 HTTP/1.0\r\n\r\n", 200}, // no Host is needed, and the connection ends
		} {
			io.WriteString(conn, step.request)
			resp, err := http.ReadResponse(r, nil)
			if err != nil {
				t.Fatalf("%q: %v", step.request, err)
			}
			if resp.StatusCode != step.want {
				t.Errorf("%q: got %d, want %d", step.request, resp.StatusCode, step.want)
			}
			io.Copy(io.Discard, resp.Body)
		}
		proxytest.WantClosed(t, conn)
		proxytest.WantArrived(t, g, "GET /1", "GET /3", "GET /7")
		for range 7 {
			if x := g.Next(t); !x.Tunnel {
				t.Errorf("%s: not marked as inside a tunnel", x.Address())
			}
		}
	}
}

// Port 80 in CONNECT and no port in Host name one origin in clear; 443 in TLS.
func TestDefaultPorts(t *testing.T) {
	p := proxytest.StartParent(t, "http")
	g := proxytest.Start(t, proxytest.Options{Parent: p})
	conn := g.Tunnel("away.example.com:80")
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(proxytest.Patience))
	request := "GET /80 HTTP/1.1\r\nHost: Away.Example.com.\r\nConnection: close\r\n\r\n"
	io.WriteString(conn, request)
	if answer := proxytest.ReadAnswer(t, conn, request); proxytest.StatusOf(answer) != "200" {
		t.Errorf("clear: %s", answer)
	}
	for _, host := range []string{"away.example.com", "AWAY.example.com:443", "away.example.com."} {
		request := "GET /443 HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n"
		if answer := g.Secure("AWAY.example.COM:443", "away.example.com", request); proxytest.StatusOf(answer) != "200" {
			t.Errorf("TLS, Host %s: %s", host, answer)
		}
	}
	proxytest.WantArrived(t, g, "GET /80", "GET /443", "GET /443", "GET /443")
	if got := g.Last().Host; got != "away.example.com" {
		t.Errorf("the origin received Host %q", got)
	}
}

// "Connection: close" ends the client's connection, after its answer, and not
// the gate's to the origin.
func TestConnectionClose(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{})
	request := "GET /%s HTTP/1.1\r\nHost: " + proxytest.Host(g.HTTPS) + "\r\nConnection: close\r\n\r\n"
	for range 2 {
		conn := tls.Client(g.Tunnel(proxytest.Host(g.HTTPS)), &tls.Config{RootCAs: g.Roots, ServerName: "127.0.0.1"})
		conn.SetDeadline(time.Now().Add(proxytest.Patience))
		fmt.Fprintf(conn, request, "")
		answer, err := io.ReadAll(conn) // to the end
		if proxytest.StatusOf(string(answer)) != "200" || !strings.Contains(string(answer), "\r\nConnection: close\r\n") || err != nil {
			t.Errorf("got %q, %v", answer, err)
		}
		conn.Close()
	}
	if seen := g.Requests(); seen[1].RemoteAddr != seen[2].RemoteAddr {
		t.Errorf("the origin was connected to anew: %s, then %s", seen[1].RemoteAddr, seen[2].RemoteAddr)
	}
}

func TestManyStreams(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{})
	cc := g.HTTP2(t, proxytest.Host(g.HTTPS), "127.0.0.1")
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			path, want := fmt.Sprintf("/%d", i), 200
			if i%2 == 1 {
				path, want = fmt.Sprintf("/private/%d", i), 403
			}
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, g.HTTPS+path, nil)
			resp, err := cc.RoundTrip(req)
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			// Every stream gets its own answer.
			if resp.StatusCode != want || !strings.Contains(string(body), path) || err != nil {
				t.Errorf("%s: got %d, %q, %v, want %d", path, resp.StatusCode, body, err, want)
			}
		})
	}
	wg.Wait()
	if got := g.Arrived(); len(got) != 50 || strings.Contains(strings.Join(got, " "), "private") {
		t.Errorf("reached the origin: %q", got)
	}
}

// An HTTP/2 client may have 100 requests in progress on a connection.
func TestMaxStreams(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{})
	conn := tls.Client(g.Tunnel(proxytest.Host(g.HTTPS)), &tls.Config{RootCAs: g.Roots, ServerName: "127.0.0.1", NextProtos: []string{"h2"}})
	defer conn.Close()
	io.WriteString(conn, http2.ClientPreface)
	f := http2.NewFramer(conn, conn)
	if err := f.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	frame, err := f.ReadFrame()
	settings, ok := frame.(*http2.SettingsFrame)
	if !ok {
		t.Fatalf("got %v, %v, want SETTINGS", frame, err)
	}
	if n, _ := settings.Value(http2.SettingMaxConcurrentStreams); n != 100 {
		t.Errorf("%d streams are permitted, want 100", n)
	}
}

// A client without SNI, as for addresses, gets the certificate of the host that
// it named in CONNECT.
func TestCertificates(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{})
	port := proxytest.Host(g.HTTPS)[len("127.0.0.1"):]
	leaf := func(connect, sni string, version uint16) *x509.Certificate {
		conn := tls.Client(g.Tunnel(connect), &tls.Config{InsecureSkipVerify: true, ServerName: sni, MaxVersion: version})
		defer conn.Close()
		if err := conn.Handshake(); err != nil {
			t.Fatalf("CONNECT %s, SNI %q: %v", connect, sni, err)
		}
		return conn.ConnectionState().PeerCertificates[0]
	}
	for _, c := range []struct{ connect, sni, name string }{
		{"127.0.0.1", "", "127.0.0.1"},
		{"[::1]", "", "::1"},
		{"loop.example.com", "", "loop.example.com"},
		{"loop.example.com", "loop.example.com", "loop.example.com"},
		{"LOOP.example.com", "loop.EXAMPLE.com", "loop.example.com"},
		{"XN--bcher-kva.example", "", "xn--bcher-kva.example"},
		{"under_score.example", "", "under_score.example"},
		// Else the client could not read why it is refused.
		{"loop.example.com", "other.example", "other.example"},
	} {
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			cert := leaf(c.connect+port, c.sni, version)
			if _, err := cert.Verify(x509.VerifyOptions{Roots: g.Roots, DNSName: c.name}); err != nil {
				t.Errorf("CONNECT %s, SNI %q: not valid for %s: %v", c.connect, c.sni, c.name, err)
			}
		}
	}
	if a, b := leaf("127.0.0.1"+port, "", 0), leaf("127.0.0.1"+port, "", 0); !a.Equal(b) {
		t.Error("a certificate was signed anew for the same host")
	}
	conn := tls.Client(g.Tunnel(proxytest.Host(g.HTTPS)), &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11})
	defer conn.Close()
	if err := conn.Handshake(); err == nil {
		t.Error("TLS 1.1 was accepted")
	}
}

func TestSessionResumption(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{})
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		// The gate answers a client whose protocols it does not know by another tls.Config.
		for _, protocols := range [][]string{nil, {"http/1.1"}, {"of-its-own"}} {
			config := &tls.Config{RootCAs: g.Roots, ServerName: "127.0.0.1", MaxVersion: version, NextProtos: protocols, ClientSessionCache: tls.NewLRUClientSessionCache(1)}
			for i := range 2 {
				conn := tls.Client(g.Tunnel(proxytest.Host(g.HTTPS)), config)
				conn.SetDeadline(time.Now().Add(proxytest.Patience))
				// The ticket of TLS 1.3 comes after the handshake.
				io.WriteString(conn, "GET / HTTP/1.1\r\nHost: "+proxytest.Host(g.HTTPS)+"\r\nConnection: close\r\n\r\n")
				if answer, err := io.ReadAll(conn); proxytest.StatusOf(string(answer)) != "200" {
					t.Fatalf("got %q, %v", answer, err)
				}
				if got, want := conn.ConnectionState().DidResume, i == 1; got != want {
					t.Errorf("%s, %v, connection %d: resumed: %v, want %v", tls.VersionName(version), protocols, i+1, got, want)
				}
				conn.Close()
			}
		}
	}
}

// A ClientHello larger than the read buffer of net/http arrives complete, whether the client
// sends it with CONNECT or later.
func TestLargeClientHello(t *testing.T) {
	protocols := []string{"http/1.1"}
	for i := range 40 {
		protocols = append(protocols, fmt.Sprintf("%d-%s", i, strings.Repeat("x", 240)))
	}
	g := proxytest.Start(t, proxytest.Options{})
	for _, together := range []bool{false, true} {
		conn := connectWith(t, dialed(t, g.Addr), fmt.Sprintf("CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\n\r\n", proxytest.Host(g.HTTPS)), together)
		inside := tls.Client(conn, &tls.Config{RootCAs: g.Roots, ServerName: "127.0.0.1", NextProtos: protocols})
		fmt.Fprintf(inside, "GET /1 HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", proxytest.Host(g.HTTPS))
		if answer, err := io.ReadAll(inside); proxytest.StatusOf(string(answer)) != "200" {
			t.Errorf("together: %v: got %q, %v", together, answer, err)
		}
	}
}

// TestConnectRefused: the status line of a refused CONNECT has the reason, and the next response on the connection the
// usual text.
func TestConnectRefused(t *testing.T) {
	known := func(login policy.Login) func(c *policy.Config) {
		return func(c *policy.Config) {
			c.Crawlers.Known, c.Crawlers.RefuseUnknown = []*policy.Crawler{{Name: "news", Login: login, Sources: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}}, true
			if login.Required() {
				c.Crawlers.Known[0].Sources = nil
			}
		}
	}
	deny := func(c *policy.Config) {
		c.Overrides = []policy.Override{{Hosts: []glob.Glob{glob.Text("*")}, Action: policy.Deny, Reason: "not for us"}}
	}
	for _, c := range []struct {
		name   string
		o      proxytest.Options
		target string // default: the origin
		want   string
	}{
		{"unknown client", proxytest.Options{Engine: known(policy.Login{})}, "", "403 Unknown client"},
		{"no login", proxytest.Options{Engine: known(policy.Login{User: "team", Hash: "never compared"})}, "", "407 Login required"},
		{"a port that the guard forbids", proxytest.Options{Egress: func(e *proxy.Egress) { e.Ports = []int{1} }}, "", "403 Destination prohibited"},
		{"a passthrough host that an override denies", proxytest.Options{Engine: deny, Proxy: proxytest.PassThrough}, "", "403 Refused by the operator"},
		{"a passthrough host that a rule denies", proxytest.Options{Robots: "User-agent: *\nDisallow: /\n", Proxy: proxytest.PassThrough}, "", "403 Refused by robots rules"},
		{"no port", proxytest.Options{}, "a.example", "400 Bad Request"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := proxytest.Start(t, c.o)
			target := cmp.Or(c.target, proxytest.Host(g.HTTPS))
			conn, resp := g.ConnectTo(t, target)
			if resp.Status != c.want || resp.ContentLength <= 0 {
				t.Errorf("got %q, want %q", resp.Status, c.want)
			}
			secure := tls.Client(dialed(t, g.Addr), &tls.Config{InsecureSkipVerify: true})
			fmt.Fprintf(secure, "CONNECT %s HTTP/1.0\r\n\r\n", target)
			if resp, err := proxytest.ReadHead(secure); err != nil || resp.Status != c.want {
				t.Errorf("in TLS: got %v, %v", resp, err)
			}
			if resp.Close {
				return
			}
			r := bufio.NewReader(conn)
			_, _ = r.Discard(int(resp.ContentLength))
			fmt.Fprintf(conn, "TRACE %s/x HTTP/1.1\r\nHost: %s\r\n\r\n", g.HTTP, proxytest.Host(g.HTTP))
			if next, err := http.ReadResponse(r, nil); err != nil || next.Status != fmt.Sprintf("%d %s", next.StatusCode, http.StatusText(next.StatusCode)) {
				t.Errorf("the next response: %v, %v", next, err)
			}
		})
	}
}
