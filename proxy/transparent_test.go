package proxy_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdh"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"robotsgate/internal/gatetest"
	"robotsgate/policy/pace"
	"robotsgate/proxy"
	"robotsgate/proxy/internal/client"
	"robotsgate/proxy/internal/proxytest"
)

// A redirecting listener accepts connections as if they were redirected: their clients have connected to the port, of
// an address at which nothing listens.
type redirecting struct {
	net.Listener
	port int
}

func (l redirecting) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &redirectedConn{c.(*net.TCPConn), l.port}, nil
}

type redirectedConn struct {
	*net.TCPConn
	port int
}

func (c *redirectedConn) LocalAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr("192.0.2.1"), uint16(c.port)))
}

// Redirected is for ServeTransparent.
func (c *redirectedConn) Redirected() bool { return c.port != 0 }

// redirect starts a listener for connections to a port, and returns its address.
func redirect(t *testing.T, g *proxytest.Gate, port string) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- g.Proxy.ServeTransparent(redirecting{l, n}) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		g.Proxy.Shutdown(ctx)
		if err := <-served; err != nil {
			t.Errorf("ServeTransparent: %v", err)
		}
	})
	return l.Addr().String()
}

func portOf(rawURL string) string {
	_, port, _ := net.SplitHostPort(proxytest.Host(rawURL))
	return port
}

// dialed connects to an address.
func dialed(t *testing.T, address string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(proxytest.Patience))
	return conn
}

// HTTP/2 inside TLS is served like HTTP/1.
func TestTransparentHTTP2(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{})
	address := redirect(t, g, portOf(g.HTTPS))
	var p http.Protocols
	p.SetHTTP2(true)
	tr := &http.Transport{Protocols: &p, TLSClientConfig: &tls.Config{RootCAs: g.Roots}, DialContext: func(context.Context, string, string) (net.Conn, error) {
		return net.Dial("tcp", address)
	}}
	t.Cleanup(tr.CloseIdleConnections)
	client := &http.Client{Transport: tr}
	origin := "https://loop.example.com:" + portOf(g.HTTPS)
	for path, want := range map[string]int{"/a": 200, "/private/": 403, "/other": 421, "/port": 421, "/address": 421} {
		authority := map[string]string{"/other": "second.example.com", "/port": "loop.example.com:1", "/address": "127.0.0.1"}[path]
		req, err := http.NewRequestWithContext(t.Context(), "GET", origin+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = authority
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		proxytest.WantStatus(t, resp, want)
		if resp.ProtoMajor != 2 {
			t.Errorf("spoken: %s", resp.Proto)
		}
	}
}

// A tunnel to a passthrough host that has waited for its turn carries all that the client sends: nothing else reads the
// connection any more, although the gate has watched it for a disconnected client. It may be held for longer than a
// client may take for its first bytes.
func TestTransparentPassthroughHeld(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{Robots: "# nothing\n", Proxy: func(o *proxy.Options) {
		proxytest.PassThrough(o)
		c := pace.Default()
		c.MinDelay, o.Limits.HeaderTimeout = 1500*time.Millisecond, time.Second
		o.Settings.Pacer = pace.New(c, nil)
	}})
	address, request := redirect(t, g, portOf(g.HTTPS)), "GET /a HTTP/1.1\r\nHost: any\r\nConnection: close\r\n\r\n"
	for range 2 {
		conn := tls.Client(dialed(t, address), &tls.Config{RootCAs: g.OriginRoots, ServerName: "loop.example.com"})
		if _, err := io.WriteString(conn, request); err != nil {
			t.Fatal(err)
		}
		if answer := proxytest.ReadAnswer(t, conn, request); proxytest.StatusOf(answer) != "200" {
			t.Errorf("inside: %s", answer)
		}
		conn.Close()
		g.Next(t)
	}
}

// A redirected client that leaves while its tunnel to a passthrough host waits gives its place up.
func TestTransparentPassthroughLeaves(t *testing.T) {
	pacer := newTestPacer()
	g := proxytest.Start(t, proxytest.Options{Robots: "# nothing\n", Proxy: func(o *proxy.Options) {
		proxytest.PassThrough(o)
		o.Settings.Pacer = pacer
	}})
	conn := dialed(t, redirect(t, g, portOf(g.HTTPS)))
	go tls.Client(conn, &tls.Config{ServerName: "loop.example.com"}).Handshake()
	proxytest.Receive(t, pacer.waiting, "the tunnel's wait")
	conn.Close()
	if x := g.Next(t); x.Stages.Sent != 0 || x.Error == "" {
		t.Errorf("record: sent after %v, error %q", x.Stages.Sent, x.Error)
	}
}

// A ClientHello that names no host is answered with an alert. (TestTransparentKit has what is not TLS.)
func TestTransparentRefused(t *testing.T) {
	for _, c := range []struct {
		name, sni string
		want      client.ConnRefusal
		alert     byte
	}{
		{"no name", "", client.NoName, client.AlertMissingExtension},
		{"an address", "192.0.2.201", client.BadName, client.AlertUnrecognizedName},
		{"an IPv6 address", "2001:db8::1", client.BadName, client.AlertUnrecognizedName},
		{"an IPv6 address in brackets", "[2001:db8::1]", client.BadName, client.AlertUnrecognizedName},
		{"another spelling of an address", "0x7f.1", client.BadName, client.AlertUnrecognizedName},
		{"a number", "2130706433", client.BadName, client.AlertUnrecognizedName},
		{"an address in wide digits", "\uff11\uff12\uff17.0.0.1", client.BadName, client.AlertUnrecognizedName},
		{"a port", "loop.example.com:444", client.BadName, client.AlertUnrecognizedName},
		{"userinfo", "me@loop.example.com", client.BadName, client.AlertUnrecognizedName},
		{"a path", "loop.example.com/a", client.BadName, client.AlertUnrecognizedName},
		{"a space", "loop .example.com", client.BadName, client.AlertUnrecognizedName},
		{"a line feed", "loop\n.example.com", client.BadName, client.AlertUnrecognizedName},
		{"NUL", "loop\x00.example.com", client.BadName, client.AlertUnrecognizedName},
		{"NUL at the end", "loop.example.com\x00", client.BadName, client.AlertUnrecognizedName},
		{"too long", strings.Repeat("a", 63) + strings.Repeat(".aaaaaaaaa", 20), client.BadName, client.AlertUnrecognizedName},
		{"a label that is too long", strings.Repeat("a", 64) + ".example.com", client.BadName, client.AlertUnrecognizedName},
		{"two dots", "loop..example.com", client.BadName, client.AlertUnrecognizedName},
		{"a dot first", ".example.com", client.BadName, client.AlertUnrecognizedName},
		{"not UTF-8", "\xff\xfe.example.com", client.BadName, client.AlertUnrecognizedName},
		{"a trailing dot", "loop.example.com.", client.BadHello, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := proxytest.Start(t, proxytest.Options{})
			conn := dialed(t, redirect(t, g, "443"))
			if c.sni == "" {
				io.WriteString(conn, hello(t, ""))
			} else {
				io.WriteString(conn, helloFor(t, c.sni))
			}
			rest, _ := io.ReadAll(conn)
			if want := []byte{0x15, 3, 3, 0, 2, 2, c.alert}; c.alert != 0 && !bytes.Equal(rest, want) || c.alert == 0 && len(rest) > 0 {
				t.Errorf("answered %q, want %q", rest, want)
			}
			proxytest.Eventually(t, "it is counted", func() bool { return g.Proxy.Redirections().Refused[c.want] == 1 })
			if g.Count() > 0 || len(g.Done) > 0 {
				t.Error("a request has left, or is recorded")
			}
		})
	}
	t.Run("not redirected", func(t *testing.T) {
		g := proxytest.Start(t, proxytest.Options{})
		conn := dialed(t, redirect(t, g, "0"))
		io.WriteString(conn, get("/a"))
		if rest, _ := io.ReadAll(conn); len(rest) > 0 {
			t.Errorf("answered %q", rest)
		}
		proxytest.Eventually(t, "it is counted", func() bool { return g.Proxy.Redirections().Refused[client.NotRedirected] == 1 })
	})
}

// Refusals are logged once a minute, with their clients.
func TestTransparentRefusalsAreLogged(t *testing.T) {
	var logged gatetest.Output
	g := proxytest.Start(t, proxytest.Options{Proxy: func(o *proxy.Options) { o.Log = slog.New(slog.NewTextHandler(&logged, nil)) }})
	address := redirect(t, g, "443")
	for range 3 {
		conn := dialed(t, address)
		io.WriteString(conn, hello(t, ""))
		io.ReadAll(conn)
	}
	proxytest.Eventually(t, "all are counted", func() bool { return g.Proxy.Redirections().Refused[client.NoName] == 3 })
	if got := logged.String(); strings.Count(got, "redirected connections are refused") != 1 || !strings.Contains(got, "reason=no-name client=127.0.0.1 others_since_last=0") {
		t.Errorf("logged: %s", got)
	}
}

// The outer name of an encrypted ClientHello counts. The client learns that the gate cannot read the inner one, from the
// gate's certificate for the outer name.
func TestTransparentECH(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{})
	key, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public := key.PublicKey().Bytes()
	outer := "loop.example.com"
	contents := append([]byte{7, 0, 0x20, 0, byte(len(public))}, public...) // RFC 9849, section 4
	contents = append(contents, 0, 4, 0, 1, 0, 1, 32, byte(len(outer)))
	contents = append(append(contents, outer...), 0, 0)
	config := append([]byte{0xfe, 0x0d, 0, byte(len(contents))}, contents...)
	list := append([]byte{0, byte(len(config))}, config...)
	conn := tls.Client(dialed(t, redirect(t, g, portOf(g.HTTPS))), &tls.Config{RootCAs: g.Roots, ServerName: "second.example.com", EncryptedClientHelloConfigList: list, MinVersion: tls.VersionTLS13})
	err = conn.Handshake()
	if _, rejected := errors.AsType[*tls.ECHRejectionError](err); !rejected {
		t.Errorf("the handshake: %v", err)
	}
	if n := g.Proxy.Redirections(); n.Served != 1 {
		t.Errorf("got %+v", n)
	}
}

// A WebSocket goes through, in clear and in TLS.
func TestTransparentWebSocket(t *testing.T) {
	for _, scheme := range []string{"http", "https"} {
		t.Run(scheme, func(t *testing.T) {
			g := proxytest.Start(t, proxytest.Options{Handler: echo})
			origin := g.HTTP
			if scheme == "https" {
				origin = g.HTTPS
			}
			conn := dialed(t, redirect(t, g, portOf(origin)))
			if scheme == "https" {
				conn = tls.Client(conn, &tls.Config{RootCAs: g.Roots, ServerName: "loop.example.com"})
			}
			io.WriteString(conn, "GET /chat HTTP/1.1"+loopHost+"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
			r := bufio.NewReader(conn)
			resp, err := http.ReadResponse(r, nil)
			if err != nil {
				t.Fatal(err)
			}
			proxytest.WantStatus(t, resp, 101)
			io.WriteString(conn, "hello\n")
			if line, _ := r.ReadString('\n'); line != "echo hello\n" {
				t.Errorf("got %q", line)
			}
		})
	}
}

// A connection of the gate to an origin that is redirected to the gate again is refused, so that it can't dial for ever.
func TestTransparentOwnConnection(t *testing.T) {
	shared := &proxy.OriginConns{}
	g := proxytest.Start(t, proxytest.Options{OriginConns: shared, Proxy: func(o *proxy.Options) { o.OriginConns = shared }})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go g.Proxy.ServeTransparent(l) // as if the rules redirected connections to its address
	resp, body := g.Get("http://" + l.Addr().String() + "/a")
	proxytest.WantStatus(t, resp, 403) // its robots.txt is unreachable
	if n := g.Proxy.Redirections(); n.Refused[client.IsOwn] == 0 || n.Served > 0 {
		t.Errorf("got %+v: %s", n, body)
	}
	if n := shared.Len(); n > 0 {
		t.Errorf("%d connections are open", n)
	}
	conn := dialed(t, l.Addr().String())
	io.WriteString(conn, to(l.Addr().String(), "/a"))
	if answer := proxytest.ReadAnswer(t, conn, ""); proxytest.StatusOf(answer) != "403" || g.Proxy.Redirections().Served != 1 {
		t.Errorf("another client got %s", answer)
	}
}

// The warning about a client that does not trust the CA does not name the address that the client has chosen.
func TestTransparentUntrusting(t *testing.T) {
	var logged gatetest.Output
	g := proxytest.Start(t, proxytest.Options{Proxy: func(o *proxy.Options) { o.Log = slog.New(slog.NewTextHandler(&logged, nil)) }})
	conn := tls.Client(dialed(t, redirect(t, g, "443")), &tls.Config{RootCAs: g.OriginRoots, ServerName: "loop.example.com"})
	if err := conn.Handshake(); err == nil {
		t.Fatal("the client trusts the gate")
	}
	proxytest.Eventually(t, "it is logged", func() bool { return strings.Contains(logged.String(), "it does not trust the CA") })
	if got := logged.String(); strings.Contains(got, "192.0.2.1") {
		t.Errorf("logged: %s", got)
	}
}

// The connections count for the limits of their clients.
func TestTransparentLimits(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{Proxy: func(o *proxy.Options) { o.Settings.MaxConnectionsPerClient = 1 }})
	address := redirect(t, g, portOf(g.HTTP))
	first := dialed(t, address)
	io.WriteString(first, get("/a"))
	if answer := proxytest.ReadAnswer(t, first, get("/a")); proxytest.StatusOf(answer) != "200" {
		t.Fatalf("got %s", answer)
	}
	second := dialed(t, address)
	io.WriteString(second, get("/b"))
	if answer, _ := io.ReadAll(second); len(answer) > 0 {
		t.Errorf("got %s", answer)
	}
	first.Close()
	proxytest.Eventually(t, "another connection is served", func() bool {
		conn := dialed(t, address)
		defer conn.Close()
		io.WriteString(conn, get("/c"))
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil) // an error until the gate has seen the end of the first
		return err == nil && resp.StatusCode == http.StatusOK
	})
	if n := g.Proxy.Connections().Open; n > 1 {
		t.Errorf("%d connections are open", n)
	}
}

// A client that disconnects cancels its request.
func TestTransparentDisconnect(t *testing.T) {
	for _, scheme := range []string{"http", "https"} {
		t.Run(scheme, func(t *testing.T) {
			arrived, left := make(chan bool, 1), make(chan bool, 1)
			g := proxytest.Start(t, proxytest.Options{Handler: func(_ http.ResponseWriter, r *http.Request) {
				arrived <- true
				<-r.Context().Done()
				left <- true
			}})
			origin := g.HTTP
			if scheme == "https" {
				origin = g.HTTPS
			}
			under := dialed(t, redirect(t, g, portOf(origin)))
			conn := under
			if scheme == "https" {
				conn = tls.Client(under, &tls.Config{RootCAs: g.Roots, ServerName: "loop.example.com"})
			}
			io.WriteString(conn, get("/slow"))
			proxytest.Receive(t, arrived, "the request")
			under.Close()
			proxytest.Receive(t, left, "the end of the request")
		})
	}
}

// Shutdown ends the listener and connections without a request, and waits for a request in flight.
func TestTransparentShutdown(t *testing.T) {
	arrived, release := make(chan bool), make(chan bool)
	g := proxytest.Start(t, proxytest.Options{Handler: func(rw http.ResponseWriter, _ *http.Request) {
		arrived <- true
		<-release
		io.WriteString(rw, "done")
	}})
	address := redirect(t, g, portOf(g.HTTP))
	silent, busy := dialed(t, address), dialed(t, address)
	io.WriteString(busy, get("/slow"))
	proxytest.Receive(t, arrived, "the request")
	ended := make(chan error)
	go func() { ended <- g.Proxy.Shutdown(t.Context()) }()
	if rest, _ := io.ReadAll(silent); len(rest) > 0 {
		t.Errorf("the silent connection was sent %q", rest)
	}
	proxytest.Eventually(t, "nothing listens", func() bool {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
	close(release)
	if answer := proxytest.ReadAnswer(t, busy, get("/slow")); !strings.HasSuffix(answer, "done") {
		t.Errorf("got %s", answer)
	}
	if err := proxytest.Receive(t, ended, "the end"); err != nil {
		t.Error(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Proxy.ServeTransparent(l); err != nil {
		t.Errorf("after Shutdown: %v", err)
	}
}

// The pages of a gate name its own address to a redirected client, not the one that the client has chosen.
func TestTransparentOwnPage(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{})
	conn := dialed(t, redirect(t, g, portOf(g.HTTP)))
	request := to("robotsgate.invalid", "/proxy.pac")
	io.WriteString(conn, request)
	if answer := proxytest.ReadAnswer(t, conn, request); !strings.Contains(answer, "PROXY "+g.Addr) || strings.Contains(answer, "192.0.2.1") {
		t.Errorf("got %s", answer)
	}
}

// After a temporary error, accepting goes on.
func TestTransparentAcceptFails(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port, _ := strconv.Atoi(portOf(g.HTTP))
	failing := &failingListener{Listener: redirecting{l, port}}
	failing.left.Store(3)
	served := make(chan error, 1)
	go func() { served <- g.Proxy.ServeTransparent(failing) }()
	conn := dialed(t, l.Addr().String())
	io.WriteString(conn, get("/a"))
	if answer := proxytest.ReadAnswer(t, conn, get("/a")); proxytest.StatusOf(answer) != "200" || failing.left.Load() > 0 {
		t.Errorf("got %s", answer)
	}
	l.Close()
	if err := proxytest.Receive(t, served, "the end"); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a listener that is closed by another: %v", err)
	}
}

type failingListener struct {
	net.Listener
	left atomic.Int32
}

func (l *failingListener) Accept() (net.Conn, error) {
	if l.left.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	return l.Listener.Accept()
}

// helloFor returns a ClientHello with a server name of any bytes.
func helloFor(t *testing.T, name string) string {
	t.Helper()
	stand := strings.Repeat("x", len(name)-2) + ".y"
	return strings.Replace(hello(t, stand), stand, name, 1)
}

// hello returns the ClientHello that crypto/tls sends with a server name.
func hello(t *testing.T, name string) string {
	t.Helper()
	client, server := net.Pipe()
	defer client.Close()
	defer server.Close()
	go tls.Client(client, &tls.Config{ServerName: name, InsecureSkipVerify: true}).Handshake()
	var head [5]byte
	if _, err := io.ReadFull(server, head[:]); err != nil {
		t.Fatal(err)
	}
	body := make([]byte, int(head[3])<<8|int(head[4]))
	if _, err := io.ReadFull(server, body); err != nil {
		t.Fatal(err)
	}
	return string(head[:]) + string(body)
}
