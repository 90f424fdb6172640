package proxy

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
	"time"
)

// inFlight is a handler that holds requests until release, or until they are cancelled.
type inFlight struct {
	arrived, gone chan string // paths
	release       chan bool
}

func newInFlight() *inFlight {
	return &inFlight{make(chan string, 10), make(chan string, 10), make(chan bool)}
}

func (f *inFlight) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/quick" {
		return
	}
	if r.URL.Path == "/half" {
		io.WriteString(rw, "half")
		rw.(http.Flusher).Flush()
	}
	f.arrived <- r.URL.Path
	select {
	case <-f.release:
		io.WriteString(rw, "done")
	case <-r.Context().Done():
		f.gone <- r.URL.Path
	}
}

// shutdown starts Shutdown, and returns when no connection is accepted any more.
func (w *world) shutdown(t *testing.T, grace time.Duration) <-chan error {
	t.Helper()
	ended := make(chan error, 1)
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	t.Cleanup(cancel)
	go func() { ended <- w.gate.Shutdown(ctx) }()
	eventually(t, "no connection is accepted", func() bool {
		conn, err := net.Dial("tcp", w.addr)
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
		f := newInFlight()
		w := newWorld(t, options{handler: f.ServeHTTP})
		type result struct {
			way, body string
			err       error
		}
		results := make(chan result, 3)
		var all sync.WaitGroup
		w.ways(t, func(t *testing.T, v way) {
			all.Go(func() {
				resp, err := v.client.Get(v.origin + path)
				if err != nil {
					results <- result{v.name, "", err}
					return
				}
				defer resp.Body.Close()
				body, err := io.ReadAll(resp.Body)
				results <- result{v.name, string(body), err}
			})
			receive(t, f.arrived, "the request")
		})
		ended := w.shutdown(t, patience)
		select {
		case err := <-ended:
			t.Fatalf("Shutdown did not wait: %v", err)
		default:
		}
		close(f.release)
		for range 3 {
			if r := receive(t, results, "a response"); !strings.HasSuffix(r.body, "done") || r.err != nil {
				t.Errorf("%s %s: got %q, %v", r.way, path, r.body, r.err)
			}
		}
		if err := receive(t, ended, "the end of Shutdown"); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		all.Wait()
	}
}

// Connections without a request are closed at once: used or not, in clear or in TLS, with
// or without a tunnel.
func TestShutdownClosesIdle(t *testing.T) {
	f := newInFlight()
	w := newWorld(t, options{handler: f.ServeHTTP, gate: func(o *Options) { o.Limits.HeaderTimeout = time.Hour }}) // too long to be what ends them
	clear := w.dial()
	fmt.Fprintf(clear, "GET %s/quick HTTP/1.1\r\nHost: x\r\n\r\n", w.http)
	secure := tls.Client(w.tunnel(host(w.https)), &tls.Config{RootCAs: w.roots, ServerName: "127.0.0.1"})
	fmt.Fprintf(secure, "GET /quick HTTP/1.1\r\nHost: %s\r\n\r\n", host(w.https))
	for _, conn := range []net.Conn{clear, secure} {
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(patience))
		if resp, err := http.ReadResponse(bufio.NewReaderSize(oneByte{conn}, 16), nil); err != nil || resp.StatusCode != 200 {
			t.Fatal(resp, err)
		}
	}
	h2 := w.http2(t, host(w.https), "127.0.0.1")
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, w.https+"/quick", nil)
	if resp, err := h2.RoundTrip(req); err != nil || resp.StatusCode != 200 {
		t.Fatal(resp, err)
	}
	silent := w.tunnel(host(w.https))
	defer silent.Close()
	ended := w.shutdown(t, patience)
	start := time.Now()
	if err := receive(t, ended, "the end of Shutdown"); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	if took := time.Since(start); took > patience/2 {
		t.Errorf("Shutdown took %v", took)
	}
	for name, conn := range map[string]net.Conn{"in clear": clear, "in a tunnel": secure, "silent": silent} {
		conn.SetReadDeadline(time.Now().Add(patience))
		if rest, err := io.ReadAll(conn); isTimeout(err) {
			t.Errorf("%s: still open: %q", name, rest)
		}
	}
	eventually(t, "the HTTP/2 connection is closed", func() bool { return h2.Err() != nil })
}

// When the context of Shutdown ends, requests in flight and their connections to origins are closed.
func TestShutdownCutsOff(t *testing.T) {
	f := newInFlight()
	w := newWorld(t, options{handler: f.ServeHTTP, gate: func(o *Options) {
		o.Settings.Passthrough = func(host string) bool { return host == "loop.example.com" }
	}, engine: allowHost(t, "loop.example.com")})
	failed := make(chan error, 3)
	w.ways(t, func(t *testing.T, v way) {
		go func() {
			resp, err := v.client.Get(v.origin + "/half")
			if err == nil {
				_, err = io.ReadAll(resp.Body)
				resp.Body.Close()
			}
			failed <- err
		}()
		receive(t, f.arrived, "the request")
	})
	unseen := w.tunnel(strings.Replace(host(w.https), "127.0.0.1", "loop.example.com", 1))
	defer unseen.Close()
	if err := receive(t, w.shutdown(t, 100*time.Millisecond), "the end of Shutdown"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Shutdown: %v, want the end of the context", err)
	}
	for range 3 {
		if err := receive(t, failed, "the end of a response"); err == nil {
			t.Error("a response that was cut off looks complete")
		}
		receive(t, f.gone, "the end at the origin")
	}
	unseen.SetReadDeadline(time.Now().Add(patience))
	if rest, err := io.ReadAll(unseen); isTimeout(err) {
		t.Errorf("the tunnel is still open: %q, %v", rest, err)
	}
	for range 4 { // all of them have a record
		w.next(t)
	}
}

// Shutdown waits for a passthrough tunnel to end.
func TestShutdownWaitsForTunnel(t *testing.T) {
	w, target := rawOrigin(t, func(conn *net.TCPConn) { io.Copy(conn, conn) })
	conn, resp := w.connectTo(t, target)
	wantStatus(t, resp, 200)
	ended := w.shutdown(t, patience)
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
	if err := receive(t, ended, "the end of Shutdown"); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
}

// A tunnel that is open when the context of Shutdown ends is closed, and Shutdown returns an error.
func TestShutdownCutsTunnel(t *testing.T) {
	w, target := rawOrigin(t, func(conn *net.TCPConn) { io.Copy(conn, conn) })
	conn, resp := w.connectTo(t, target)
	wantStatus(t, resp, 200)
	if err := receive(t, w.shutdown(t, 50*time.Millisecond), "the end of Shutdown"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Shutdown: %v, want the end of the context", err)
	}
	wantClosed(t, conn)
	w.next(t)
}

// ours returns the goroutines in this package's code, without those of tests.
func ours() []string {
	buf := make([]byte, 4<<20)
	buf = buf[:runtime.Stack(buf, true)]
	var found []string
	for stack := range strings.SplitSeq(string(buf), "\n\n") {
		for line := range strings.Lines(stack) {
			if strings.Contains(line, "/proxy/") && strings.Contains(line, ".go:") && !strings.Contains(line, "_test.go:") &&
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
	f := newInFlight()
	w := newWorld(t, options{handler: f.ServeHTTP, gate: func(o *Options) {
		o.Settings.Tags.HeadTimeout = 10 * time.Millisecond
		o.Settings.Passthrough = func(host string) bool { return host == "loop.example.com" }
	}, engine: allowHost(t, "loop.example.com")})
	loop := strings.Replace(host(w.https), "127.0.0.1", "loop.example.com", 1)
	conns := []net.Conn{w.dial(), w.dial(), w.tunnel(host(w.https)), w.tunnel(host(w.https)), w.tunnel(loop)}
	io.WriteString(conns[1], "GET http://127.0")
	io.WriteString(conns[3], "\x16\x03")
	w.ways(t, func(t *testing.T, v way) {
		v.get(t, "/quick")
		v.get(t, "/private/")
		ctx, leave := context.WithCancel(t.Context())
		req, _ := http.NewRequestWithContext(ctx, http.MethodGet, v.origin+"/half", nil)
		go func() {
			receive(t, f.arrived, "the request")
			leave()
		}()
		if resp, err := v.client.Do(req); err == nil {
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		leave()
		receive(t, f.gone, "the end at the origin")
	})
	if err := receive(t, w.shutdown(t, 50*time.Millisecond), "the end of Shutdown"); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	w.transport.Close()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	end := time.After(patience)
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
