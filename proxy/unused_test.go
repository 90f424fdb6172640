package proxy_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"robotsgate/internal/record"
	"robotsgate/policy"
	"robotsgate/proxy"
	"robotsgate/proxy/internal/proxytest"
)

// TestUnusedTunnels: a tunnel that carries no request has a record of its own, which says why. One that carries requests
// has only theirs.
func TestUnusedTunnels(t *testing.T) {
	handshake := func(conn net.Conn, c *tls.Config) {
		inside := tls.Client(conn, c)
		_ = inside.Handshake()
		inside.Close()
	}
	send := func(bytes string) func(*proxytest.Gate, net.Conn) {
		return func(_ *proxytest.Gate, conn net.Conn) {
			io.WriteString(conn, bytes)
			io.Copy(io.Discard, conn) // until the gate closes the connection
		}
	}
	trusting := func(protocol string) func(*proxytest.Gate, net.Conn) {
		return func(g *proxytest.Gate, conn net.Conn) {
			handshake(conn, &tls.Config{RootCAs: g.Roots, ServerName: "127.0.0.1", NextProtos: []string{protocol}})
		}
	}
	closes := func(*proxytest.Gate, net.Conn) {}
	untrusting := func(_ *proxytest.Gate, conn net.Conn) { handshake(conn, &tls.Config{ServerName: "127.0.0.1"}) }
	for name, c := range map[string]struct {
		do   func(*proxytest.Gate, net.Conn)
		want string
		more string // in the record's error
	}{
		"nothing":                       {closes, proxy.NothingSent, ""},
		"nothing in time":               {send(""), proxy.NothingSent, ""},
		"SSH":                           {send("SSH-2.0-OpenSSH_9.6\r\n"), proxy.NoRequest, ""},
		"SMTP":                          {send("EHLO client.example\r\n"), proxy.NoRequest, ""},
		"other bytes":                   {send("\x00\xff\r\n\r\n"), proxy.NoRequest, ""},
		"a request line that is cut":    {func(_ *proxytest.Gate, conn net.Conn) { io.WriteString(conn, "GET / HT") }, proxy.NoRequest, ""},
		"the CA is not trusted":         {untrusting, proxy.TLSGivenUp, ": remote error: tls: "},
		"a ClientHello that is cut":     {func(_ *proxytest.Gate, conn net.Conn) { io.WriteString(conn, "\x16\x03\x01\x02\x00\x01") }, proxy.TLSFailed, ""},
		"TLS that is malformed":         {send("\x16\x03\x01\x00\x04\x09\x00\x00\x00"), proxy.TLSFailed, ""},
		"a handshake only, for HTTP/1":  {trusting("http/1.1"), proxy.NoneAfterTLS, ""},
		"a handshake only, for HTTP/2":  {trusting("h2"), proxy.NoneAfterTLS, ""},
		"a request":                     {send("GET / HTTP/1.1\r\nHost: 127.0.0.1:1\r\nConnection: close\r\n\r\n"), "", ""},
		"a request that is misdirected": {send("GET / HTTP/1.1\r\nHost: 127.0.0.2:1\r\nConnection: close\r\n\r\n"), "", ""},
	} {
		for _, socks := range []bool{false, true} {
			t.Run(name+map[bool]string{false: " after CONNECT", true: " by SOCKS"}[socks], func(t *testing.T) {
				g := proxytest.Start(t, proxytest.Options{
					Engine: func(e *policy.Config) { e.Crawlers.Default.Name = "someone" },
					Proxy:  func(o *proxy.Options) { o.Limits.HeaderTimeout = time.Second },
				})
				var conn net.Conn
				if socks {
					conn = openSocks(t, g, "127.0.0.1", "1")
				} else {
					conn = g.Tunnel("127.0.0.1:1")
				}
				c.do(g, conn)
				conn.Close()
				x := g.Next(t)
				if c.want == "" {
					if x.Unused != "" || x.Method != "GET" {
						t.Errorf("record: %+v", x)
					}
				} else if x.Unused != c.want || !strings.HasPrefix(x.Error, c.want+c.more) || x.Method != "CONNECT" || x.Address() != "https://127.0.0.1:1" || !x.Tunnel ||
					x.Socks != socks || x.Crawler != "someone" || x.Status != 200 || x.Decision != "" || x.Refused != "" || x.Client != "127.0.0.1" {
					t.Errorf("want %q: %+v", c.want, x)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if err := g.Proxy.Shutdown(ctx); err != nil {
					t.Error(err)
				}
				if n := len(g.Records()); n != 1 {
					t.Errorf("%d records, want 1", n)
				}
			})
		}
	}
}

// TestUnusedAtShutdown: Shutdown returns when tunnels that it closes have their records.
func TestUnusedAtShutdown(t *testing.T) {
	returned := make(chan bool)
	g := proxytest.Start(t, proxytest.Options{Proxy: func(o *proxy.Options) {
		done := o.Done
		o.Done = func(x *record.Record) {
			select {
			case <-returned:
				t.Error("Shutdown has returned before a record was made")
			case <-time.After(100 * time.Millisecond):
			}
			done(x)
		}
	}})
	g.Tunnel(proxytest.Host(g.HTTPS))
	inside := tls.Client(g.Tunnel(proxytest.Host(g.HTTPS)), &tls.Config{RootCAs: g.Roots, ServerName: "127.0.0.1", NextProtos: []string{"h2"}})
	if err := inside.Handshake(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := g.Proxy.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	close(returned)
	if n := len(g.Records()); n != 2 {
		t.Errorf("%d records, want 2", n)
	}
}

// TestUnusedRedirected: a redirected connection in TLS is a tunnel too.
func TestUnusedRedirected(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{})
	conn := dialed(t, redirect(t, g, "8443"))
	_ = tls.Client(conn, &tls.Config{ServerName: "loop.example.com"}).Handshake()
	conn.Close()
	if x := g.Next(t); x.Unused != proxy.TLSGivenUp || x.Address() != "https://loop.example.com:8443" {
		t.Errorf("record: %+v", x)
	}
}
