package gatetest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// A LineOrigin is an origin that a test writes line by line. It counts its connections.
type LineOrigin struct {
	Host  string
	Conns atomic.Int64
	Ended chan int // the number of each connection that has been served
}

// StartLineOrigin starts an origin that calls serve with the number of each connection, from 1, until the test ends.
func StartLineOrigin(t testing.TB, serve func(n int, conn net.Conn)) *LineOrigin {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o := &LineOrigin{Host: l.Addr().String(), Ended: make(chan int, 10_000)}
	var all sync.WaitGroup
	var mu sync.Mutex
	open := map[net.Conn]bool{}
	all.Go(func() {
		for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
			n := int(o.Conns.Add(1))
			mu.Lock()
			open[conn] = true
			mu.Unlock()
			all.Go(func() {
				serve(n, conn)
				conn.Close()
				o.Ended <- n
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for conn := range open {
			conn.Close()
		}
		mu.Unlock()
		all.Wait()
	})
	return o
}

// Answering serves a connection until the gate closes it. Answer returns the response to the i-th request on the
// n-th connection, both counted from 1.
func Answering(answer func(n, i int, r *http.Request) string) func(int, net.Conn) {
	return func(n int, conn net.Conn) {
		reader := bufio.NewReader(conn)
		for i := 1; ; i++ {
			r, err := http.ReadRequest(reader)
			if err != nil {
				return
			}
			text := answer(n, i, r)
			if text == "" {
				return // it breaks the connection off
			}
			text, last := strings.CutSuffix(text, BreakOffHere)
			if io.WriteString(conn, text); last {
				return
			}
		}
	}
}

// WithoutRobots serves a connection until serve returns false or the gate closes it. It answers requests for robots.txt
// with 404, and calls serve for the others.
func WithoutRobots(serve func(n int, conn net.Conn, r *http.Request) bool) func(int, net.Conn) {
	return func(n int, conn net.Conn) {
		reader := bufio.NewReader(conn)
		for {
			r, err := http.ReadRequest(reader)
			if err != nil {
				return
			}
			if r.URL.Path == "/robots.txt" {
				io.WriteString(conn, NotFound)
			} else if !serve(n, conn, r) {
				return
			}
		}
	}
}

// NotFound is a response as on the wire.
const NotFound = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"

// BreakOffHere ends a response after which the connection is closed.
const BreakOffHere = "\x00"

// StartAnswering starts an origin whose responses name the connection and the request, see [Numbered].
func StartAnswering(t testing.TB) *LineOrigin {
	return StartLineOrigin(t, Answering(func(n, i int, _ *http.Request) string { return Numbered(n, i) }))
}

// Numbered returns the response to the i-th request on the n-th connection.
func Numbered(n, i int) string {
	text := fmt.Sprintf("%d.%d", n, i)
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
}
