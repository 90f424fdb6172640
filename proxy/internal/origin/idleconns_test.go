//go:build unix

package origin

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/proxy/internal/netconn"

	"robotsgate/internal/gatetest"
)

// reusable are responses after which the connection can be used again.
var reusable = map[string]struct{ method, answer string }{
	"length":          {http.MethodGet, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody"},
	"long":            {http.MethodGet, "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + strings.Repeat("b", 100_000)},
	"empty":           {http.MethodGet, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"},
	"chunked":         {http.MethodGet, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n"},
	"trailer":         {http.MethodGet, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: T\r\n\r\n4\r\nbody\r\n0\r\nT: x\r\n\r\n"},
	"chunked, empty":  {http.MethodGet, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
	"HEAD":            {http.MethodHead, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n"},
	"HEAD, chunked":   {http.MethodHead, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"},
	"HEAD, no length": {http.MethodHead, "HTTP/1.1 200 OK\r\n\r\n"},
	"204":             {http.MethodDelete, "HTTP/1.1 204 No Content\r\n\r\n"},
	"304":             {http.MethodGet, "HTTP/1.1 304 Not Modified\r\nContent-Length: 4\r\n\r\n"},
	"503":             {http.MethodGet, "HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbody"},
	"103":             {http.MethodGet, "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody"},
	"POST":            {http.MethodPost, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody"},
	"HTTP/1.0":        {http.MethodGet, "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 4\r\n\r\nbody"},
}

// TestKept: one connection carries many requests.
func TestKept(t *testing.T) {
	o := gatetest.StartLineOrigin(t, gatetest.Answering(func(_, _ int, r *http.Request) string { return reusable[r.Header.Get("Want")].answer }))
	c := newClient(t)
	for range 2 {
		for name, k := range reusable {
			r := request(t, k.method, o.Host)
			r.Header.Set("Want", name)
			_, body, _ := strings.Cut(k.answer, "OK\r\n")
			_, body, _ = strings.Cut(body, "\r\n\r\n")
			resp, got, err := fetch(t, c, r)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if resp.ContentLength > 0 && len(body) > 0 && got != body {
				t.Errorf("%s: got %d bytes, want %d", name, len(got), len(body))
			}
			if n := o.Conns.Load(); n != 1 {
				t.Fatalf("%s: %d connections", name, n)
			}
		}
	}
}

// TestNotKept: after some responses a connection cannot be used again. It is closed, and the
// next request is answered on another.
func TestNotKept(t *testing.T) {
	whole := func(resp *http.Response) { io.Copy(io.Discard, resp.Body) }
	unread := func(*http.Response) {}
	half := func(resp *http.Response) { io.ReadFull(resp.Body, make([]byte, 2)) }
	const stray = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nstray"
	for name, k := range map[string]struct {
		method, answer string
		read           func(*http.Response)
	}{
		"close":               {"GET", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\nbody", whole},
		"close, empty":        {"GET", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", whole},
		"close, HEAD":         {"HEAD", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\n", whole},
		"close, 204":          {"GET", "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n", whole},
		"HTTP/1.0":            {"GET", "HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\nbody", whole},
		"until it is closed":  {"GET", "HTTP/1.1 200 OK\r\n\r\nbody", half},
		"unread":              {"GET", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody", unread},
		"half read":           {"GET", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody", half},
		"half read, chunked":  {"GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n", half},
		"broken chunk":        {"GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbodyx\r\n", whole},
		"no chunk":            {"GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", whole},
		"broken trailer":      {"GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nno field\r\n\r\n", whole},
		"switch":              {"GET", "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", whole},
		"no HTTP":             {"GET", "SSH-2.0-OpenSSH\r\n", whole},
		"behind a length":     {"GET", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody" + stray, whole},
		"a byte behind it":    {"GET", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody\n", whole},
		"behind nothing":      {"GET", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" + stray, whole},
		"behind chunks":       {"GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n" + stray, whole},
		"behind a trailer":    {"GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nT: x\r\n\r\n" + stray, whole},
		"behind HEAD":         {"HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody", whole},
		"behind HEAD, chunks": {"HEAD", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n", whole},
		"behind 204":          {"GET", "HTTP/1.1 204 No Content\r\nContent-Length: 4\r\n\r\nbody", whole},
		"behind 304":          {"GET", "HTTP/1.1 304 Not Modified\r\n\r\n" + stray, whole},
	} {
		t.Run(name, func(t *testing.T) {
			o := gatetest.StartLineOrigin(t, gatetest.Answering(func(n, i int, _ *http.Request) string {
				if n == 1 {
					return k.answer
				}
				return gatetest.Numbered(n, i)
			}))
			c := newClient(t)
			r := request(t, k.method, o.Host)
			if resp, err := c.RoundTrip(r); err == nil {
				k.read(resp)
				resp.Body.Close()
			}
			// It ends without a further request.
			if n := receive(t, o.Ended, "the connection's end"); n != 1 {
				t.Errorf("connection %d ended", n)
			}
			// Not repeatable: a connection that can't be used is not tried at all.
			wantBody(t, c, request(t, http.MethodDelete, o.Host), "2.1")
		})
	}
}

// theKept returns the one idle connection.
func theKept(t *testing.T, c *http1Client) *http1Conn {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.order.Len() != 1 {
		t.Fatalf("%d connections are idle", c.order.Len())
	}
	return c.order.Front().Value.(*http1Conn)
}

// arrive waits until n bytes, or the end of the connection, have arrived, and reads nothing.
func arrive(t *testing.T, conn net.Conn, n int) {
	t.Helper()
	conn.SetDeadline(time.Now().Add(patience))
	under := conn
	for {
		outer, ok := under.(interface{ NetConn() net.Conn })
		if !ok {
			break
		}
		under = outer.NetConn()
	}
	raw, err := under.(syscall.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	err = raw.Read(func(fd uintptr) bool {
		got, _, err := syscall.Recvfrom(int(fd), make([]byte, n), syscall.MSG_PEEK)
		return err != syscall.EAGAIN && (err != nil || got == 0 || got == n)
	})
	conn.SetDeadline(time.Time{})
	if err != nil {
		t.Fatal(err)
	}
}

// readable waits until data, or the end, has arrived on the one idle connection, and reads nothing.
func readable(t *testing.T, c *http1Client) {
	t.Helper()
	arrive(t, theKept(t, c).conn, 1)
}

// TestUnasked: data that an origin sends on an idle connection is never the next response,
// and a connection that it has closed is not used.
func TestUnasked(t *testing.T) {
	for name, after := range map[string]func(conn *net.TCPConn){
		"closed":      func(conn *net.TCPConn) { conn.Close() },
		"half closed": func(conn *net.TCPConn) { conn.CloseWrite() },
		"reset":       func(conn *net.TCPConn) { conn.SetLinger(0); conn.Close() },
		"an answer":   func(conn *net.TCPConn) { io.WriteString(conn, gatetest.Numbered(6, 66)) },
		"a byte":      func(conn *net.TCPConn) { io.WriteString(conn, "\n") },
		"408":         func(conn *net.TCPConn) { io.WriteString(conn, "HTTP/1.1 408 Request Timeout\r\n\r\n"); conn.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			ended := make(chan bool)
			var arrived atomic.Int64
			o := gatetest.StartLineOrigin(t, func(n int, conn net.Conn) {
				reader := bufio.NewReader(conn)
				for i := 1; ; i++ {
					if _, err := http.ReadRequest(reader); err != nil {
						return
					}
					arrived.Add(1)
					io.WriteString(conn, gatetest.Numbered(n, i))
					if n == 1 && i == 1 {
						<-ended
						after(conn.(*net.TCPConn))
					}
				}
			})
			c := newClient(t)
			wantBody(t, c, request(t, http.MethodDelete, o.Host), "1.1")
			ended <- true
			readable(t, c)
			wantBody(t, c, request(t, http.MethodDelete, o.Host), "2.1")
			if got := arrived.Load(); got != 2 {
				t.Errorf("%d requests arrived", got)
			}
			receive(t, o.Ended, "the connection's end")
		})
	}
}

// TestQuietAfterDeadline: the timer of a deadline that was cleared may fire while the connection is idle.
func TestQuietAfterDeadline(t *testing.T) {
	o := gatetest.StartAnswering(t)
	c := newClient(t)
	r := request(t, http.MethodDelete, o.Host)
	wantBody(t, c, r, "1.1")
	theKept(t, c).conn.SetDeadline(time.Unix(1, 0))
	wantBody(t, c, r, "1.2")
}

// A oneSegment holds writes back until they are sent together.
type oneSegment struct {
	net.Conn
	hold bool
	held bytes.Buffer
}

func (w *oneSegment) Write(p []byte) (int, error) {
	if w.hold {
		return w.held.Write(p)
	}
	return w.Conn.Write(p)
}

// answer sends records in one segment.
func (w *oneSegment) answer(s *tls.Conn, records []string) {
	w.hold = true
	for _, record := range records {
		io.WriteString(s, record)
	}
	w.hold = false
	w.held.WriteTo(w.Conn)
}

// TestUnaskedInTLS: data behind a response may have been decrypted already, or not. In
// neither case does the socket show it.
func TestUnaskedInTLS(t *testing.T) {
	leaf := localLeaf(t)
	stray := gatetest.Numbered(6, 66)
	for _, length := range []int{0, 4, 5000, 16_000} {
		answer := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", length, strings.Repeat("b", length))
		for name, k := range map[string]struct {
			records []string // of the first answer, all in one segment
			want    string   // connection and request of the second response
		}{
			"nothing":     {[]string{answer}, "1.2"},
			"same record": {[]string{answer + stray}, "2.1"},
			"next record": {[]string{answer, stray}, "2.1"},
			"a byte":      {[]string{answer, "\n"}, "2.1"},
		} {
			t.Run(fmt.Sprintf("%d, %s", length, name), func(t *testing.T) {
				o := gatetest.StartLineOrigin(t, func(n int, conn net.Conn) {
					held := &oneSegment{Conn: conn}
					s := tls.Server(held, &tls.Config{Certificates: []tls.Certificate{*leaf}})
					reader := bufio.NewReader(s)
					for i := 1; ; i++ {
						if _, err := http.ReadRequest(reader); err != nil {
							return
						}
						if n == 1 && i == 1 {
							held.answer(s, k.records)
							continue
						}
						io.WriteString(s, gatetest.Numbered(n, i))
					}
				})
				c := newClient(t)
				c.connect = func(ctx context.Context, key originKey) (net.Conn, error) {
					conn, err := dialPlain(ctx, key)
					if err != nil {
						return nil, err
					}
					secure := tls.Client(netconn.New(conn), &tls.Config{InsecureSkipVerify: true})
					return secure, secure.HandshakeContext(ctx) // as Transport: not within watchDelay, which is short on a busy machine
				}
				r := request(t, http.MethodDelete, o.Host)
				r.URL.Scheme = "https"
				if _, body, err := fetch(t, c, r); err != nil || len(body) != length {
					t.Fatalf("%d bytes, %v", len(body), err)
				}
				for range 2 {
					if name == "nothing" && !theKept(t, c).usable() {
						t.Error("a check makes the connection unusable")
					}
				}
				wantBody(t, c, r, k.want)
			})
		}
	}
}

// A fakeConn is a connection on which nothing happens until it is closed.
type fakeConn struct {
	net.Conn
	closed atomic.Bool
}

func (c *fakeConn) Close() error { c.closed.Store(true); return nil }

// putIdle makes a new connection idle.
func putIdle(o *idleConns, host string) *fakeConn {
	conn := &fakeConn{}
	o.put(newHTTP1Conn(originKey{host: host}, conn))
	return conn
}

// TestIdleBounds: the idle connections to one origin and to all are bounded. The last used is used next; the longest
// idle is closed first.
func TestIdleBounds(t *testing.T) {
	t.Run("origin", func(t *testing.T) {
		o := idleConns{timeout: time.Hour}
		defer o.close()
		var all []*fakeConn
		for range maxIdleOrigin + 1 {
			all = append(all, putIdle(&o, "a"))
		}
		for i, c := range all {
			if got, want := c.closed.Load(), i == maxIdleOrigin; got != want {
				t.Fatalf("connection %d closed: %v", i, got)
			}
		}
		other := putIdle(&o, "b")
		for i := maxIdleOrigin - 1; i >= 0; i-- {
			if c := o.get(originKey{host: "a"}); c == nil || c.conn != all[i] {
				t.Fatalf("connection %d is not the next", i)
			}
		}
		if c := o.get(originKey{host: "a"}); c != nil {
			t.Error("there is one more")
		}
		if c := o.get(originKey{true, "b"}); c != nil {
			t.Error("a connection in clear is used for TLS")
		}
		if c := o.get(originKey{host: "b"}); c == nil || c.conn != other {
			t.Error("the other origin's connection is not returned")
		}
		if len(o.byOrigin) > 0 || o.order.Len() > 0 {
			t.Errorf("%d origins and %d connections are left", len(o.byOrigin), o.order.Len())
		}
	})
	t.Run("all", func(t *testing.T) {
		o := idleConns{timeout: time.Hour}
		defer o.close()
		var all []*fakeConn
		for i := range maxIdle + 2 {
			if i == maxIdle {
				o.put(o.get(originKey{host: "0"})) // used again: the oldest is 1
			}
			all = append(all, putIdle(&o, strconv.Itoa(i)))
		}
		for i, c := range all {
			if got, want := c.closed.Load(), i == 1 || i == 2; got != want {
				t.Fatalf("connection %d closed: %v", i, got)
			}
		}
		if len(o.byOrigin) != maxIdle || o.order.Len() != maxIdle {
			t.Errorf("%d origins and %d connections are idle", len(o.byOrigin), o.order.Len())
		}
	})
}

// TestIdleBoundsOfNetHTTP: net/http keeps as many idle connections over HTTP/2, or a quarter of the origins' descriptors.
func TestIdleBoundsOfNetHTTP(t *testing.T) {
	for limit, want := range map[int]struct{ all, origin int }{0: {4096, 256}, 20_000: {1988, 256}, 300: {28, 28}} {
		u := newTransport(t, Config{}, newDescriptors(limit, quietLog))
		if http2 := u.netHTTP.http2; http2.MaxIdleConns != want.all || http2.MaxIdleConnsPerHost != want.origin || u.http1.max != want.all {
			t.Errorf("%d descriptors: %d idle connections, %d to one origin, want %d and %d; %d over HTTP/1", limit, http2.MaxIdleConns, http2.MaxIdleConnsPerHost, want.all, want.origin, u.http1.max)
		}
	}
}

// TestIdleTimeout: a connection is closed when it has been idle for the timeout, and at the end no
// timer is left.
func TestIdleTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := idleConns{timeout: 90 * time.Second}
		start := time.Now()
		first := putIdle(&o, "a")
		time.Sleep(30 * time.Second) // fake clock
		second := putIdle(&o, "b")
		time.Sleep(30 * time.Second)       // fake clock
		o.put(o.get(originKey{host: "a"})) // at 60 s
		for _, step := range []struct {
			at            time.Duration
			first, second bool
		}{
			{90 * time.Second, false, false},
			{120*time.Second - 1, false, false},
			{120 * time.Second, false, true},
			{150*time.Second - 1, false, true},
			{150 * time.Second, true, true},
		} {
			time.Sleep(step.at - time.Since(start)) // fake clock
			synctest.Wait()
			if f, s := first.closed.Load(), second.closed.Load(); f != step.first || s != step.second {
				t.Errorf("after %v: closed %v and %v, want %v and %v", step.at, f, s, step.first, step.second)
			}
		}
		if o.timer != nil || len(o.byOrigin) > 0 || o.order.Len() > 0 {
			t.Error("a timer or a connection is left")
		}
		third := putIdle(&o, "a") // it begins anew
		time.Sleep(o.timeout)     // fake clock
		synctest.Wait()
		if !third.closed.Load() {
			t.Error("the next is not closed")
		}
	})
}

// TestCloseIdle: idle connections are closed, and those in use after their response.
func TestCloseIdle(t *testing.T) {
	proceed := make(chan bool)
	o := gatetest.StartLineOrigin(t, gatetest.Answering(func(n, i int, r *http.Request) string {
		if r.Method == http.MethodPost {
			<-proceed
		}
		return gatetest.Numbered(n, i)
	}))
	c := newClient(t)
	resp, err := c.RoundTrip(request(t, http.MethodGet, o.Host))
	if err != nil {
		t.Fatal(err)
	}
	wantBody(t, c, request(t, http.MethodGet, o.Host), "2.1")
	c.close()
	if n := receive(t, o.Ended, "the end of the kept one"); n != 2 {
		t.Errorf("connection %d ended", n)
	}
	if b, err := io.ReadAll(resp.Body); err != nil || string(b) != "1.1" {
		t.Errorf("got %q, %v", b, err)
	}
	if n := receive(t, o.Ended, "the end of the one in use"); n != 1 {
		t.Errorf("connection %d ended", n)
	}
	close(proceed)
	wantBody(t, c, request(t, http.MethodPost, o.Host), "3.1")
	receive(t, o.Ended, "the end of one that is used after it")
	if c.timer != nil {
		t.Error("a timer is left")
	}
}

// A described connection has a descriptor that a test chooses.
type described struct {
	net.Conn
	raw syscall.RawConn
}

func (d described) SyscallConn() (syscall.RawConn, error) { return d.raw, nil }

// noDescriptor is a descriptor that fails: the connection is not usable.
type noDescriptor struct{ syscall.RawConn }

func (noDescriptor) Control(func(uintptr)) error { return net.ErrClosed }

// TestCloseAtOnce: closing a connection does not wait for an origin that does not read.
func TestCloseAtOnce(t *testing.T) {
	leaf := localLeaf(t)
	const long = "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nbo"
	for name, k := range map[string]struct {
		answer string
		throw  func(c *http1Client, resp *http.Response, leave func())
	}{
		"kept":      {gatetest.Numbered(1, 1), func(c *http1Client, _ *http.Response, _ func()) { c.close() }},
		"no answer": {"SSH-2.0-OpenSSH\r\n", nil},
		"dead": {gatetest.Numbered(1, 1), func(c *http1Client, _ *http.Response, _ func()) {
			theKept(t, c).socket.Init(described{raw: noDescriptor{}})
			if c.get(originKey{true, "origin"}) != nil {
				t.Error("it is used again")
			}
		}},
		"unread": {long, func(_ *http1Client, resp *http.Response, _ func()) { resp.Body.Close() }},
		"left": {long, func(_ *http1Client, resp *http.Response, leave func()) {
			leave()
			io.Copy(io.Discard, resp.Body)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &http1Client{answer: time.Minute, total: time.Minute}
				c.timeout = time.Hour
				p := pipes(c, func(_ int, conn net.Conn) {
					s := tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{*leaf}})
					http.ReadRequest(bufio.NewReader(s))
					io.WriteString(s, k.answer)
					time.Sleep(time.Minute) // fake clock
				})
				plain := c.connect
				c.connect = func(ctx context.Context, key originKey) (net.Conn, error) {
					conn, err := plain(ctx, key)
					return tls.Client(conn, &tls.Config{InsecureSkipVerify: true}), err
				}
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				r := request(t, http.MethodGet, "origin")
				r.URL.Scheme = "https"
				start := time.Now()
				resp, err := c.RoundTrip(r.WithContext(ctx))
				if err == nil && k.throw != nil {
					if resp.ContentLength < 1000 {
						io.Copy(io.Discard, resp.Body)
					}
					k.throw(c, resp, leave)
				} else if err == nil || k.throw != nil {
					t.Error("the answer:", err)
				}
				if took := time.Since(start); took > 0 {
					t.Errorf("it took %v", took)
				}
				c.close()
				p.Wait()
			})
		})
	}
}

// sweepNow lets an http1Client sweep as if its one connection had been idle for checkInterval.
func sweepNow(t *testing.T, c *http1Client) {
	t.Helper()
	kept := theKept(t, c)
	c.mu.Lock()
	if c.timer != nil {
		c.timer.Stop() // had it fired already, it would have found nothing to do
	}
	kept.idleSince = time.Now().Add(-checkInterval)
	c.mu.Unlock()
	c.sweep()
}

// TestDeadAreSwept: a connection that its origin has closed, or sends to, is closed before the idle timeout.
func TestDeadAreSwept(t *testing.T) {
	for name, after := range map[string]func(conn net.Conn){
		"closed":  func(conn net.Conn) { conn.(*net.TCPConn).CloseWrite() },
		"flooded": func(conn net.Conn) { conn.Write(make([]byte, 64<<10)) },
		"quiet":   nil,
	} {
		t.Run(name, func(t *testing.T) {
			answered := make(chan bool)
			o := gatetest.StartLineOrigin(t, func(n int, conn net.Conn) {
				http.ReadRequest(bufio.NewReader(conn))
				io.WriteString(conn, gatetest.Numbered(n, 1))
				if <-answered; after != nil {
					after(conn)
				}
				io.Copy(io.Discard, conn)
			})
			c := newClient(t)
			wantBody(t, c, request(t, http.MethodGet, o.Host), "1.1")
			if answered <- true; after != nil {
				readable(t, c)
			}
			sweepNow(t, c)
			if after != nil {
				receive(t, o.Ended, "the connection's end")
				return
			}
			if c.get(originKey{host: o.Host}) == nil {
				t.Error("it is closed")
			}
		})
	}
}

// TestHTTP1UnderLoad: whatever origins and clients do, a response belongs to its own
// request, and no connection or goroutine is left.
func TestHTTP1UnderLoad(t *testing.T) {
	random := gatetest.Random(t)
	before := runtime.NumGoroutine()
	o := gatetest.StartLineOrigin(t, gatetest.Answering(func(_, i int, r *http.Request) string {
		nonce, big := r.Header.Get("Nonce"), strings.Repeat("b", random.IntN(9000))
		head := "HTTP/1.1 200 OK\r\nNonce: " + nonce + "\r\n"
		switch random.IntN(12) {
		case 0:
			return ""
		case 1:
			return head + "Content-Length: 10000\r\n\r\n" + nonce + gatetest.BreakOffHere
		case 2:
			return head + "Connection: close\r\n\r\n" + nonce + big + gatetest.BreakOffHere
		case 3:
			return head + "Content-Length: " + strconv.Itoa(len(nonce)) + "\r\n\r\n" + nonce + "HTTP/1.1 200 OK\r\nNonce: stray\r\nContent-Length: 0\r\n\r\n"
		case 4:
			return head + "Content-Length: 0\r\n\r\n"
		case 5:
			return "HTTP/1.1 103 Early Hints\r\n\r\n" + head + "Content-Length: 0\r\n\r\n"
		case 6, 7, 8:
			return head + "Transfer-Encoding: chunked\r\n\r\n" + chunk(nonce) + chunk(big+"b") + "0\r\n\r\n"
		default:
			return head + "Content-Length: " + strconv.Itoa(len(nonce+big)) + "\r\n\r\n" + nonce + big
		}
	}))
	c := newClient(t)
	c.answer = time.Second
	var all sync.WaitGroup
	var whole atomic.Int64
	for client := range 64 {
		all.Go(func() {
			for i := range 60 {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				nonce := fmt.Sprintf("%d-%d.", client, i)
				r := request(t, http.MethodGet, o.Host).WithContext(ctx)
				r.Header.Set("Nonce", nonce)
				leaves := random.IntN(6)
				if leaves == 0 {
					go cancel() // at any time
				}
				resp, err := c.RoundTrip(r.WithContext(ctx))
				if err == nil {
					if leaves == 1 {
						go cancel()
					}
					var b []byte
					if leaves == 2 {
						resp.Body.Read(make([]byte, 1))
					} else {
						b, err = io.ReadAll(resp.Body)
						if err == nil {
							whole.Add(1)
						}
					}
					resp.Body.Close()
					if got := resp.Header.Get("Nonce"); got != nonce || len(b) > 0 && !bytes.HasPrefix(b, []byte(nonce)) {
						t.Errorf("asked for %s, answered %s", nonce, got)
					}
				}
				cancel()
			}
		})
	}
	all.Wait()
	if got := whole.Load(); got < 1000 {
		t.Errorf("only %d whole answers", got)
	}
	c.close()
	for range o.Conns.Load() {
		receive(t, o.Ended, "a connection's end")
	}
	gatetest.Becomes(t, patience, "all goroutines have ended", func() bool { return runtime.NumGoroutine() <= before+1 })
}

func chunk(s string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(s), s) }
