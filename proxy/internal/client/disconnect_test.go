package client

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// detected starts a server. Each of its connections has a detector. It calls watch in place of the timer
// as soon as a request has begun, so that the tests need not wait for disconnectDelay.
func detected(t *testing.T, reads chan int, serve func(ctx context.Context, w http.ResponseWriter, r *http.Request)) net.Addr {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	type key struct{}
	s := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			d := r.Context().Value(key{}).(*DisconnectDetector)
			d.Begin(r.Body != http.NoBody)
			defer d.Stop()
			go d.watch()
			serve(r.Context(), w, r)
		}),
		ConnState: func(c net.Conn, state http.ConnState) { c.(*detectedConn).ConnState(state) },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			d := c.(*detectedConn).DisconnectDetector
			return context.WithValue(d.ConnContext(ctx), key{}, d)
		},
	}
	t.Cleanup(func() { s.Close() })
	go s.Serve(detectingListener{l, reads})
	return l.Addr()
}

type detectingListener struct {
	net.Listener
	reads chan int
}

func (l detectingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &detectedConn{c, NewDisconnectDetector(c.Read, c.SetReadDeadline), l.reads}, nil
}

type detectedConn struct {
	net.Conn
	*DisconnectDetector
	reads chan int
}

func (c *detectedConn) Read(p []byte) (int, error) {
	if c.reads != nil && len(p) == 1 {
		c.reads <- len(p)
	}
	return c.DisconnectDetector.Read(p)
}

// TestBackgroundRead: net/http reads one byte in the background of a request, once, while the
// connection is active. The detector relies on that.
func TestBackgroundRead(t *testing.T) {
	reads := make(chan int, 10)
	addr := detected(t, reads, func(_ context.Context, w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") })
	conn, err := net.Dial("tcp", addr.String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	r := bufio.NewReader(conn)
	const requests = 5
	for range requests {
		fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		if body, _ := io.ReadAll(resp.Body); string(body) != "hello" {
			t.Fatalf("got %q", body)
		}
	}
	for i := range requests {
		select {
		case <-reads:
		case <-time.After(10 * time.Second):
			t.Fatalf("%d reads of one byte, want %d: net/http watches its clients in another way", i, requests)
		}
	}
	if len(reads) > 0 {
		t.Errorf("%d reads of one byte more than requests", len(reads))
	}
}

// TestDisconnectCancels: the context ends when the client disconnects.
func TestDisconnectCancels(t *testing.T) {
	gone, arrived := make(chan error, 1), make(chan bool, 1)
	addr := detected(t, nil, func(ctx context.Context, _ http.ResponseWriter, _ *http.Request) {
		arrived <- true
		select {
		case <-ctx.Done():
			gone <- ctx.Err()
		case <-time.After(10 * time.Second):
			gone <- nil
		}
	})
	conn, err := net.Dial("tcp", addr.String())
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	<-arrived
	conn.Close()
	if err := <-gone; err != context.Canceled {
		t.Errorf("the context's error is %v", err)
	}
}

// TestPipelinedByteIsKept: what the detector reads of the next request is not lost.
func TestPipelinedByteIsKept(t *testing.T) {
	served := make(chan string, 2)
	release := make(chan bool)
	addr := detected(t, nil, func(ctx context.Context, w http.ResponseWriter, r *http.Request) {
		served <- r.URL.Path
		<-release
		if ctx.Err() != nil {
			t.Errorf("%s: the context has ended: %v", r.URL.Path, ctx.Err())
		}
		io.WriteString(w, r.URL.Path)
	})
	conn, err := net.Dial("tcp", addr.String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	r := bufio.NewReader(conn)
	for range 20 {
		fmt.Fprint(conn, "GET /1 HTTP/1.1\r\nHost: a\r\n\r\n")
		if path := <-served; path != "/1" {
			t.Fatalf("served %s", path)
		}
		fmt.Fprint(conn, "GET /2 HTTP/1.1\r\nHost: a\r\n\r\n") // while the first is served
		release <- true
		if path := <-served; path != "/2" {
			t.Fatalf("served %s", path)
		}
		release <- true
		for _, want := range []string{"/1", "/2"} {
			resp, err := http.ReadResponse(r, nil)
			if err != nil {
				t.Fatal(err)
			}
			if body, _ := io.ReadAll(resp.Body); string(body) != want {
				t.Fatalf("got %q, want %s", body, want)
			}
		}
	}
}
