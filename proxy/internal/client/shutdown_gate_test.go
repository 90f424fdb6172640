package client_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"robotsgate/proxy"
	"robotsgate/proxy/internal/proxytest"
)

// shutdown starts Shutdown, and returns when no connection is accepted any more.
func shutdown(t *testing.T, g *proxytest.Gate, grace time.Duration) <-chan error {
	t.Helper()
	ended := make(chan error, 1)
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	t.Cleanup(cancel)
	go func() { ended <- g.Proxy.Shutdown(ctx) }()
	proxytest.Eventually(t, "no connection is accepted", func() bool {
		conn, err := net.Dial("tcp", g.Addr)
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
	return ended
}

// Shutdown waits for requests in flight, also inside tunnels.
func TestShutdownFinishes(t *testing.T) {
	for _, path := range []string{"/whole", "/half"} {
		f := proxytest.NewInFlight()
		g := proxytest.Start(t, proxytest.Options{Handler: f.ServeHTTP})
		type result struct {
			way, body string
			err       error
		}
		results := make(chan result, 3)
		var all sync.WaitGroup
		g.Ways(t, func(t *testing.T, v proxytest.Way) {
			all.Go(func() {
				resp, err := v.Client.Get(v.Origin + path)
				if err != nil {
					results <- result{v.Name, "", err}
					return
				}
				defer resp.Body.Close()
				body, err := io.ReadAll(resp.Body)
				results <- result{v.Name, string(body), err}
			})
			proxytest.Receive(t, f.Arrived, "the request")
		})
		ended := shutdown(t, g, proxytest.Patience)
		select {
		case err := <-ended:
			t.Fatalf("Shutdown did not wait: %v", err)
		default:
		}
		close(f.Release)
		for range 3 {
			if r := proxytest.Receive(t, results, "a response"); !strings.HasSuffix(r.body, "done") || r.err != nil {
				t.Errorf("%s %s: got %q, %v", r.way, path, r.body, r.err)
			}
		}
		if err := proxytest.Receive(t, ended, "the end of Shutdown"); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		all.Wait()
	}
}

// Connections without a request are closed at once: used or not, in clear or in TLS, with
// or without a tunnel.
func TestShutdownClosesIdle(t *testing.T) {
	f := proxytest.NewInFlight()
	g := proxytest.Start(t, proxytest.Options{Handler: f.ServeHTTP, Proxy: func(o *proxy.Options) { o.Limits.HeaderTimeout = time.Hour }}) // too long to be what ends them
	clear := g.Dial()
	fmt.Fprintf(clear, "GET %s/quick HTTP/1.1\r\nHost: x\r\n\r\n", g.HTTP)
	secure := tls.Client(g.Tunnel(proxytest.Host(g.HTTPS)), &tls.Config{RootCAs: g.Roots, ServerName: "127.0.0.1"})
	fmt.Fprintf(secure, "GET /quick HTTP/1.1\r\nHost: %s\r\n\r\n", proxytest.Host(g.HTTPS))
	for _, conn := range []net.Conn{clear, secure} {
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(proxytest.Patience))
		if resp, err := http.ReadResponse(bufio.NewReaderSize(iotest.OneByteReader(conn), 16), nil); err != nil || resp.StatusCode != 200 {
			t.Fatal(resp, err)
		}
	}
	h2 := g.HTTP2(t, proxytest.Host(g.HTTPS), "127.0.0.1")
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, g.HTTPS+"/quick", nil)
	if resp, err := h2.RoundTrip(req); err != nil || resp.StatusCode != 200 {
		t.Fatal(resp, err)
	}
	silent := g.Tunnel(proxytest.Host(g.HTTPS))
	defer silent.Close()
	ended := shutdown(t, g, proxytest.Patience)
	start := time.Now()
	if err := proxytest.Receive(t, ended, "the end of Shutdown"); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	if took := time.Since(start); took > proxytest.Patience/2 {
		t.Errorf("Shutdown took %v", took)
	}
	for name, conn := range map[string]net.Conn{"in clear": clear, "in a tunnel": secure, "silent": silent} {
		conn.SetReadDeadline(time.Now().Add(proxytest.Patience))
		if rest, err := io.ReadAll(conn); proxytest.IsTimeout(err) {
			t.Errorf("%s: still open: %q", name, rest)
		}
	}
	proxytest.Eventually(t, "the HTTP/2 connection is closed", func() bool { return h2.Err() != nil })
}

// When the context of Shutdown ends, requests in flight and their connections to origins are closed.
func TestShutdownCutsOff(t *testing.T) {
	f := proxytest.NewInFlight()
	g := proxytest.Start(t, proxytest.Options{Handler: f.ServeHTTP, Proxy: func(o *proxy.Options) {
		o.Settings.Passthrough = func(host string) bool { return host == "loop.example.com" }
	}, Engine: proxytest.AllowHost(t, "loop.example.com")})
	failed := make(chan error, 3)
	g.Ways(t, func(t *testing.T, v proxytest.Way) {
		go func() {
			resp, err := v.Client.Get(v.Origin + "/half")
			if err == nil {
				_, err = io.ReadAll(resp.Body)
				resp.Body.Close()
			}
			failed <- err
		}()
		proxytest.Receive(t, f.Arrived, "the request")
	})
	unseen := g.Tunnel(strings.Replace(proxytest.Host(g.HTTPS), "127.0.0.1", "loop.example.com", 1))
	defer unseen.Close()
	if err := proxytest.Receive(t, shutdown(t, g, 100*time.Millisecond), "the end of Shutdown"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Shutdown: %v, want the end of the context", err)
	}
	for range 3 {
		if err := proxytest.Receive(t, failed, "the end of a response"); err == nil {
			t.Error("a response that was cut off looks complete")
		}
		proxytest.Receive(t, f.Gone, "the end at the origin")
	}
	unseen.SetReadDeadline(time.Now().Add(proxytest.Patience))
	if rest, err := io.ReadAll(unseen); proxytest.IsTimeout(err) {
		t.Errorf("the tunnel is still open: %q, %v", rest, err)
	}
	for range 4 { // all of them have a record
		g.Next(t)
	}
}

// Shutdown waits for a passthrough tunnel to end.
func TestShutdownWaitsForTunnel(t *testing.T) {
	g, target := proxytest.StartRawOrigin(t, func(conn *net.TCPConn) { io.Copy(conn, conn) })
	conn, resp := g.ConnectTo(t, target)
	proxytest.WantStatus(t, resp, 200)
	ended := shutdown(t, g, proxytest.Patience)
	io.WriteString(conn, "ping")
	echo := make([]byte, 4)
	if _, err := io.ReadFull(conn, echo); err != nil || string(echo) != "ping" {
		t.Errorf("got %q, %v", echo, err)
	}
	select {
	case err := <-ended:
		t.Errorf("Shutdown did not wait: %v", err)
	default:
	}
	conn.Close()
	if err := proxytest.Receive(t, ended, "the end of Shutdown"); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
}

// A tunnel that is open when the context of Shutdown ends is closed, and Shutdown returns an error.
func TestShutdownCutsTunnel(t *testing.T) {
	g, target := proxytest.StartRawOrigin(t, func(conn *net.TCPConn) { io.Copy(conn, conn) })
	conn, resp := g.ConnectTo(t, target)
	proxytest.WantStatus(t, resp, 200)
	if err := proxytest.Receive(t, shutdown(t, g, 50*time.Millisecond), "the end of Shutdown"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Shutdown: %v, want the end of the context", err)
	}
	proxytest.WantClosed(t, conn)
	g.Next(t)
}

// ours returns the goroutines in this package's code, without those of tests.
func ours() []string {
	buf := make([]byte, 4<<20)
	buf = buf[:runtime.Stack(buf, true)]
	var found []string
	for stack := range strings.SplitSeq(string(buf), "\n\n") {
		for line := range strings.Lines(stack) {
			if strings.Contains(line, "/proxy/") && strings.Contains(line, ".go:") && !strings.Contains(line, "_test.go:") && !strings.Contains(line, "/proxytest/") &&
				!strings.Contains(line, "/goproxy") && !strings.Contains(line, "/net/proxy/") {
				found = append(found, stack)
				break
			}
		}
	}
	return found
}

// After Shutdown no goroutine of the gate is left.
func TestShutdownLeavesNothing(t *testing.T) {
	f := proxytest.NewInFlight()
	g := proxytest.Start(t, proxytest.Options{Handler: f.ServeHTTP, Proxy: func(o *proxy.Options) {
		o.Settings.Tags.HeadTimeout = 10 * time.Millisecond
		o.Settings.Passthrough = func(host string) bool { return host == "loop.example.com" }
	}, Engine: proxytest.AllowHost(t, "loop.example.com")})
	loop := strings.Replace(proxytest.Host(g.HTTPS), "127.0.0.1", "loop.example.com", 1)
	conns := []net.Conn{g.Dial(), g.Dial(), g.Tunnel(proxytest.Host(g.HTTPS)), g.Tunnel(proxytest.Host(g.HTTPS)), g.Tunnel(loop)}
	io.WriteString(conns[1], "GET http://127.0")
	io.WriteString(conns[3], "\x16\x03")
	g.Ways(t, func(t *testing.T, v proxytest.Way) {
		v.Get(t, "/quick")
		v.Get(t, "/private/")
		ctx, leave := context.WithCancel(t.Context())
		req, _ := http.NewRequestWithContext(ctx, http.MethodGet, v.Origin+"/half", nil)
		go func() {
			proxytest.Receive(t, f.Arrived, "the request")
			leave()
		}()
		if resp, err := v.Client.Do(req); err == nil {
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		leave()
		proxytest.Receive(t, f.Gone, "the end at the origin")
	})
	if err := proxytest.Receive(t, shutdown(t, g, 50*time.Millisecond), "the end of Shutdown"); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	g.Transport.Close()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	end := time.After(proxytest.Patience)
	for len(ours()) > 0 {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("still running:\n%s", strings.Join(ours(), "\n\n"))
		}
	}
	for _, c := range conns {
		c.Close()
	}
}
