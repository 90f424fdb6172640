package proxy

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

// A lineOrigin is an origin that a test writes line by line. It counts its connections.
type lineOrigin struct {
	host  string
	conns atomic.Int64
	ended chan int // the number of each connection that has been served
}

func startLineOrigin(t *testing.T, serve func(n int, conn net.Conn)) *lineOrigin {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o := &lineOrigin{host: l.Addr().String(), ended: make(chan int, 10_000)}
	var all sync.WaitGroup
	var mu sync.Mutex
	open := map[net.Conn]bool{}
	all.Go(func() {
		for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
			n := int(o.conns.Add(1))
			mu.Lock()
			open[conn] = true
			mu.Unlock()
			all.Go(func() {
				serve(n, conn)
				conn.Close()
				o.ended <- n
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

// answering serves a connection until the gate closes it. Answer returns the response to the i-th request on the
// n-th connection, both counted from 1.
func answering(answer func(n, i int, r *http.Request) string) func(int, net.Conn) {
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
			text, last := strings.CutSuffix(text, breakOffHere)
			if io.WriteString(conn, text); last {
				return
			}
		}
	}
}

// breakOffHere ends a response after which the connection is closed.
const breakOffHere = "\x00"

// startAnswering starts an origin whose responses name the connection and the request, see numbered.
func startAnswering(t *testing.T) *lineOrigin {
	return startLineOrigin(t, answering(func(n, i int, _ *http.Request) string { return numbered(n, i) }))
}

func numbered(n, i int) string {
	text := fmt.Sprintf("%d.%d", n, i)
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
}
