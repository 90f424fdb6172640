package client_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"robotsgate/internal/gatetest"
	"robotsgate/proxy"
	"robotsgate/proxy/internal/proxytest"
)

// The gate's own port speaks TLS to clients that begin with it, so that https:// proxy URLs
// work, by address and by name, for http and for https origins.
func TestTLSToTheGate(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{})
	port := g.Addr[len("127.0.0.1"):]
	for _, gate := range []string{g.Addr, "loop.example.com" + port, "localhost" + port} {
		for _, http2 := range []bool{false, true} {
			client := g.ClientVia("https", gate, http2)
			g.Origins(t, func(t *testing.T, origin string) {
				resp, body := proxytest.Send(t, client, http.MethodGet, origin+"/open", nil)
				proxytest.WantStatus(t, resp, 200)
				if body != "hello from /open" {
					t.Errorf("body: got %q", body)
				}
				resp, _ = proxytest.Send(t, client, http.MethodGet, origin+"/private/", nil)
				proxytest.WantStatus(t, resp, 403)
				proxytest.WantHeader(t, resp, "Robots-Gate-Decision", "deny;reason=rule")
			})
			client.CloseIdleConnections()
		}
	}
	for _, line := range g.Arrived() {
		if line != "GET /open" {
			t.Errorf("reached the origin: %s", line)
		}
	}
	if conn, err := tls.Dial("tcp", g.Addr, &tls.Config{RootCAs: g.Roots, MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}); err == nil {
		conn.Close()
		t.Error("TLS 1.1 was accepted")
	}
	// It offers only HTTP/1.1.
	conn, err := tls.Dial("tcp", g.Addr, &tls.Config{RootCAs: g.Roots, NextProtos: []string{"h2", "http/1.1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if got := conn.ConnectionState().NegotiatedProtocol; got != "http/1.1" {
		t.Errorf("negotiated %q", got)
	}
	// It serves the own pages too.
	io.WriteString(conn, "GET /ca.pem HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	if answer := proxytest.ReadAnswer(t, conn, "GET"); proxytest.StatusOf(answer) != "200" || !strings.Contains(answer, "BEGIN CERTIFICATE") {
		t.Errorf("/ca.pem: %s", answer)
	}
}

// A passthrough tunnel in TLS ends when its origin closes the connection.
func TestTLSToTheGatePassthrough(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{Proxy: proxytest.PassThrough})
	conn, err := tls.Dial("tcp", g.Addr, &tls.Config{RootCAs: g.Roots})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(proxytest.Patience))
	fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: x\r\n\r\n", proxytest.Host(g.HTTPS))
	if resp, err := proxytest.ReadHead(conn); err != nil || resp.StatusCode != 200 {
		t.Fatal(resp, err)
	}
	inside := tls.Client(conn, &tls.Config{RootCAs: g.OriginRoots, ServerName: "127.0.0.1"})
	request := "GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
	io.WriteString(inside, request)
	if answer := proxytest.ReadAnswer(t, inside, request); proxytest.StatusOf(answer) != "200" {
		t.Errorf("got %s", answer)
	}
	proxytest.WantClosed(t, conn)
	conn.Close()
	g.Next(t)
}

const keptAlive = "GET / HTTP/1.1\r\nHost: x\r\n\r\n" // of the gate itself

// connectOnce opens a connection, and reports whether it was within the limits.
func connectOnce(t *testing.T, g *proxytest.Gate) (net.Conn, bool) {
	t.Helper()
	conn := g.Dial()
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(proxytest.Patience))
	io.WriteString(conn, keptAlive)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil { // the gate has closed it
		if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
			t.Fatal("the connection stays open, without a response")
		}
		return conn, false
	}
	io.Copy(io.Discard, resp.Body)
	if resp.StatusCode != 200 {
		t.Errorf("got %d, want 200", resp.StatusCode)
	}
	return conn, true
}

// Connections of all kinds count against the limits until they close.
func TestMaxConnections(t *testing.T) {
	for scope, limits := range map[string]func(*proxy.Settings){
		"in all":     func(s *proxy.Settings) { s.MaxConnections = 3 },
		"per client": func(s *proxy.Settings) { s.MaxConnectionsPerClient = 3 },
	} {
		for kind, open := range map[string]func(t *testing.T, g *proxytest.Gate) net.Conn{
			"idle":   func(t *testing.T, g *proxytest.Gate) net.Conn { c, _ := connectOnce(t, g); return c },
			"tunnel": func(t *testing.T, g *proxytest.Gate) net.Conn { return g.Tunnel(proxytest.Host(g.HTTPS)) },
			"tunnel in use": func(t *testing.T, g *proxytest.Gate) net.Conn {
				return tls.Client(g.Tunnel(proxytest.Host(g.HTTPS)), &tls.Config{RootCAs: g.Roots, ServerName: "127.0.0.1"})
			},
			"unseen tunnel": func(t *testing.T, g *proxytest.Gate) net.Conn {
				return g.Tunnel(strings.Replace(proxytest.Host(g.HTTPS), "127.0.0.1", "loop.example.com", 1))
			},
			"in TLS": func(t *testing.T, g *proxytest.Gate) net.Conn {
				return tls.Client(g.Dial(), &tls.Config{RootCAs: g.Roots, ServerName: "127.0.0.1"})
			},
		} {
			t.Run(scope+", "+kind, func(t *testing.T) {
				g := proxytest.Start(t, proxytest.Options{Proxy: func(o *proxy.Options) {
					limits(&o.Settings)
					o.Settings.Passthrough = func(host string) bool { return host == "loop.example.com" }
				}, Engine: proxytest.AllowHost(t, "loop.example.com")})
				var held []net.Conn
				for range 3 {
					c := open(t, g)
					if s, ok := c.(*tls.Conn); ok {
						if err := s.Handshake(); err != nil {
							t.Error(err)
						}
					}
					held = append(held, c)
				}
				if _, in := connectOnce(t, g); in {
					t.Error("a fourth connection was accepted")
				}
				// In TLS it is only closed: a response in clear would look like broken TLS.
				if err := tls.Client(g.Dial(), &tls.Config{RootCAs: g.Roots, ServerName: "127.0.0.1"}).Handshake(); err == nil || strings.Contains(err.Error(), "does not look like a TLS") {
					t.Errorf("the handshake of a fourth ended with %v", err)
				}
				for _, c := range held {
					c.Close()
				}
				for range 3 { // all of them at once
					proxytest.Eventually(t, "a connection is accepted", func() bool { _, in := connectOnce(t, g); return in })
				}
				if _, in := connectOnce(t, g); in {
					t.Error("a fourth connection was accepted afterwards")
				}
			})
		}
	}
}

func TestHeaderLimit(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{Proxy: func(o *proxy.Options) { o.Limits.MaxHeaderBytes = 8 << 10 }})
	long := "X-Long: " + strings.Repeat("x", 20<<10)
	for _, request := range []string{
		"GET " + g.HTTP + "/ HTTP/1.1\r\nHost: x\r\n" + long + "\r\n\r\n",
		"GET " + g.HTTP + "/" + strings.Repeat("x", 20<<10) + " HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET " + g.HTTP + "/ HTTP/1.1\r\nHost: x\r\n" + strings.Repeat("A: b\r\n", 4000) + "\r\n",
		"CONNECT " + proxytest.Host(g.HTTPS) + " HTTP/1.1\r\nHost: x\r\n" + long + "\r\n\r\n",
	} {
		if answer := g.Raw(request); proxytest.StatusOf(answer) != "431" {
			t.Errorf("%.60q: got %.100q, want a 431", request, answer)
		}
	}
	if answer := g.Secure(proxytest.Host(g.HTTPS), "127.0.0.1", "GET / HTTP/1.1\r\nHost: "+proxytest.Host(g.HTTPS)+"\r\n"+long+"\r\n\r\n"); proxytest.StatusOf(answer) != "431" {
		t.Errorf("inside: got %.100q, want a 431", answer)
	}
	// In HTTP/2 the gate announces its limit, and clients respect it.
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, g.HTTPS+"/", nil)
	req.Header.Set("X-Long", long)
	if resp, err := g.Client().Do(req); err == nil {
		resp.Body.Close()
		proxytest.WantStatus(t, resp, 431)
	}
	proxytest.WantArrived(t, g)
	g.Ways(t, func(t *testing.T, v proxytest.Way) {
		resp, _ := v.Get(t, "/", "X-Long", strings.Repeat("x", 6<<10))
		proxytest.WantStatus(t, resp, 200)
	})
}

// A client that sends nothing, or very slowly, is disconnected in time.
func TestSlowHeadOfRequest(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{Proxy: func(o *proxy.Options) { o.Limits.HeaderTimeout = 200 * time.Millisecond }})
	for name, said := range map[string]string{
		"nothing":         "",
		"half a head":     "GET http://127.0.0.1/ HTTP/1.1\r\nHost: x\r\n",
		"a byte of TLS":   "\x16",
		"half of a hello": "\x16\x03\x01\x02\x00\x01\x00",
	} {
		t.Run(name, func(t *testing.T) {
			conn := g.Dial()
			defer conn.Close()
			io.WriteString(conn, said)
			proxytest.WantClosed(t, conn)
		})
	}
	t.Run("a trickle", func(t *testing.T) {
		conn := g.Dial()
		defer conn.Close()
		io.WriteString(conn, "GET http://127.0.0.1/ HTTP/1.1\r\n")
		go func() {
			tick := time.NewTicker(20 * time.Millisecond)
			defer tick.Stop()
			for range tick.C {
				if _, err := io.WriteString(conn, "A: b\r\n"); err != nil {
					return
				}
			}
		}()
		conn.SetReadDeadline(time.Now().Add(proxytest.Patience))
		if rest, err := io.ReadAll(conn); proxytest.StatusOf(string(rest)) == "200" || proxytest.IsTimeout(err) {
			t.Errorf("not closed: %q, %v", rest, err)
		}
	})
}

// An idle connection is closed in the end.
func TestIdleTimeout(t *testing.T) {
	t.Parallel() // it waits most of the time
	g := proxytest.Start(t, proxytest.Options{Proxy: func(o *proxy.Options) { o.Limits.IdleTimeout = 100 * time.Millisecond }})
	secure := func(protocols ...string) net.Conn {
		return tls.Client(g.Tunnel(proxytest.Host(g.HTTPS)), &tls.Config{RootCAs: g.Roots, ServerName: "127.0.0.1", NextProtos: protocols})
	}
	for name, conn := range map[string]net.Conn{"clear": g.Dial(), "tunnel": secure("http/1.1")} {
		t.Run(name, func(t *testing.T) {
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(proxytest.Patience))
			target := proxytest.Host(g.HTTPS)
			if name == "clear" {
				target = g.HTTP
				fmt.Fprintf(conn, "GET %s/ HTTP/1.1\r\nHost: x\r\n\r\n", target)
			} else {
				fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", target)
			}
			r := bufio.NewReader(conn)
			resp, err := http.ReadResponse(r, nil)
			if err != nil {
				t.Fatal(err)
			}
			proxytest.WantStatus(t, resp, 200)
			io.Copy(io.Discard, resp.Body)
			if _, err := r.ReadByte(); err != io.EOF {
				t.Errorf("got %v, want the end", err)
			}
		})
	}
	t.Run("HTTP/2", func(t *testing.T) {
		cc := g.HTTP2(t, proxytest.Host(g.HTTPS), "127.0.0.1")
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, g.HTTPS+"/", nil)
		resp, err := cc.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		proxytest.Eventually(t, "the connection is closed", func() bool { return cc.Err() != nil })
	})
}

// TestRejectedCertificateIsLogged: one line names the client, and the page to read.
func TestRejectedCertificateIsLogged(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		var book gatetest.Output
		g := proxytest.Start(t, proxytest.Options{Proxy: func(o *proxy.Options) { o.Log = slog.New(slog.NewTextHandler(&book, nil)) }})
		for range 5 {
			tunnel, resp := g.ConnectTo(t, "shop.example:443", "User-Agent: curl/8.0 evil=\"x\"")
			proxytest.WantStatus(t, resp, 200)
			conn := tls.Client(tunnel, &tls.Config{ServerName: "shop.example", RootCAs: x509.NewCertPool(), MaxVersion: version})
			if err := conn.Handshake(); err == nil {
				t.Fatal("the handshake succeeds")
			}
		}
		const warning = "most likely it does not trust the CA"
		proxytest.Eventually(t, "the log names the client", func() bool { return strings.Contains(book.String(), warning) })
		for _, want := range []string{"target=shop.example:443", "client=127.0.0.1", "page=http://" + g.Addr + "/"} {
			if !strings.Contains(book.String(), want) {
				t.Errorf("no %q in %s", want, book.String())
			}
		}
		if n := strings.Count(book.String(), warning); n != 1 || strings.Contains(book.String(), "evil") {
			t.Errorf("%d lines, want one, without the User-Agent: %s", n, book.String())
		}
	}
}
