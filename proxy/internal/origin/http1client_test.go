package origin

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/internal/gatetest"
	"robotsgate/policy/snapshot"
)

// newClient returns a client with plain connections, which is closed when the test ends.
func newClient(t *testing.T) *http1Client {
	c := &http1Client{connect: dialPlain, answer: patience, total: patience}
	c.timeout = time.Hour
	t.Cleanup(c.close)
	return c
}

func dialPlain(ctx context.Context, key originKey) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", key.host)
}

// request returns a request as the gate sends it.
func request(t *testing.T, method, host string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+host+"/", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// fetch sends a request, and returns the response with its body.
func fetch(t *testing.T, c *http1Client, r *http.Request) (*http.Response, string, error) {
	t.Helper()
	resp, err := c.RoundTrip(r)
	if err != nil {
		return nil, "", err
	}
	b, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	return resp, string(b), err
}

func wantBody(t *testing.T, c *http1Client, r *http.Request, want string) {
	t.Helper()
	if _, body, err := fetch(t, c, r); err != nil || body != want {
		t.Errorf("%s: got %q, %v, want %q", r.Method, body, err, want)
	}
}

// pipes makes the client connect by net.Pipe, for tests with a fake clock. The result counts
// the connections, and waits until all have been served.
func pipes(c *http1Client, serve func(n int, conn net.Conn)) *piped {
	p := &piped{}
	c.connect = func(context.Context, originKey) (net.Conn, error) {
		n := int(p.conns.Add(1))
		ours, theirs := net.Pipe()
		p.Go(func() {
			defer theirs.Close()
			serve(n, theirs)
		})
		return ours, nil
	}
	return p
}

type piped struct {
	conns atomic.Int64
	sync.WaitGroup
}

// TestBrokenConnection: if an idle connection breaks before any of the response has been read, a request with a safe
// method is sent once more, on a new connection.
func TestBrokenConnection(t *testing.T) {
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodDelete, http.MethodPost, http.MethodPut, "PURGE"} {
		t.Run(method, func(t *testing.T) {
			var arrived atomic.Int64
			o := gatetest.StartLineOrigin(t, gatetest.Answering(func(n, i int, r *http.Request) string {
				if r.Method == method {
					arrived.Add(1)
				}
				if i > 1 {
					return ""
				}
				return "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
			}))
			c := newClient(t)
			wantBody(t, c, request(t, "FIRST", o.Host), "")
			_, _, err := fetch(t, c, request(t, method, o.Host))
			want := int64(1)
			if isSafe(request(t, method, o.Host)) {
				want = 2
			}
			if got := arrived.Load(); got != want || (err == nil) != (want == 2) {
				t.Errorf("sent %d times, want %d; error %v", got, want, err)
			}
		})
	}
}

// TestRepeatedOnce: only one of the idle connections is tried.
func TestRepeatedOnce(t *testing.T) {
	var mu sync.Mutex
	var arrived []int // by which connection
	var together sync.WaitGroup
	together.Add(8)
	o := gatetest.StartLineOrigin(t, gatetest.Answering(func(n, i int, _ *http.Request) string {
		if i == 1 && n <= 8 {
			together.Done()
			together.Wait()
			return gatetest.Numbered(n, i)
		}
		mu.Lock()
		defer mu.Unlock()
		arrived = append(arrived, n)
		return ""
	}))
	c := newClient(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { fetch(t, c, request(t, http.MethodGet, o.Host)) })
	}
	all.Wait()
	if _, _, err := fetch(t, c, request(t, http.MethodGet, o.Host)); err == nil {
		t.Error("there is an answer")
	}
	mu.Lock()
	defer mu.Unlock()
	if len(arrived) != 2 || arrived[1] != 9 {
		t.Errorf("the request arrived on the connections %v; want an idle one and the ninth", arrived)
	}
	if got := c.order.Len(); got != 7 {
		t.Errorf("%d are still idle, want 7", got)
	}
}

// TestNotRepeated: a request is not sent again if some of the response has been read, if the connection was
// new, or if the request was canceled.
func TestNotRepeated(t *testing.T) {
	for _, begun := range []string{"H", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 103 Early Hints\r\n\r\n"} {
		t.Run(begun, func(t *testing.T) {
			o := gatetest.StartLineOrigin(t, func(n int, conn net.Conn) {
				reader := bufio.NewReader(conn)
				http.ReadRequest(reader)
				io.WriteString(conn, gatetest.Numbered(n, 1))
				http.ReadRequest(reader)
				io.WriteString(conn, begun)
			})
			c := newClient(t)
			wantBody(t, c, request(t, http.MethodGet, o.Host), "1.1")
			if _, body, err := fetch(t, c, request(t, http.MethodGet, o.Host)); err == nil {
				t.Errorf("got %q", body)
			}
			if got := o.Conns.Load(); got != 1 {
				t.Errorf("%d connections", got)
			}
		})
	}
	t.Run("new", func(t *testing.T) {
		o := gatetest.StartLineOrigin(t, gatetest.Answering(func(int, int, *http.Request) string { return "" }))
		if _, _, err := fetch(t, newClient(t), request(t, http.MethodGet, o.Host)); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("got %v", err)
		}
		if got := o.Conns.Load(); got != 1 {
			t.Errorf("%d connections", got)
		}
	})
	t.Run("client left", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		o := gatetest.StartLineOrigin(t, gatetest.Answering(func(n, i int, _ *http.Request) string {
			if i == 2 {
				cancel()
				return ""
			}
			return gatetest.Numbered(n, i)
		}))
		c := newClient(t)
		wantBody(t, c, request(t, http.MethodGet, o.Host), "1.1")
		if _, _, err := fetch(t, c, request(t, http.MethodGet, o.Host).WithContext(ctx)); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if got := o.Conns.Load(); got != 1 {
			t.Errorf("%d connections", got)
		}
	})
}

// TestConfiguredTime: the time until the head of a response is the one to wait for it, and twice the one to connect.
func TestConfiguredTime(t *testing.T) {
	u := newTransport(t, Config{DialTimeout: time.Second, ResponseHeaderTimeout: time.Minute}, &Descriptors{})
	if want := 62 * time.Second; u.http1.total != want || u.netHTTP.limit != want || u.http1.answer != time.Minute {
		t.Errorf("%v and %v in all, want %v; %v for the answer", u.http1.total, u.netHTTP.limit, want, u.http1.answer)
	}
}

// TestAnswerTime: the time limit for the head of a response holds whatever the origin does. A request that meets
// it on an idle connection is not sent again.
func TestAnswerTime(t *testing.T) {
	for name, serve := range map[string]func(conn net.Conn){
		"never answers": func(conn net.Conn) { io.Copy(io.Discard, conn) },
		"never reads":   nil,
		"drips its head": func(conn net.Conn) {
			http.ReadRequest(bufio.NewReader(conn))
			for range "until the other side closes it" {
				if _, err := io.WriteString(conn, "H"); err != nil {
					return
				}
				time.Sleep(time.Second) // fake clock
			}
		},
		"informs for ever": func(conn net.Conn) {
			http.ReadRequest(bufio.NewReader(conn))
			for {
				if _, err := io.WriteString(conn, "HTTP/1.1 102 Processing\r\n\r\n"); err != nil {
					return
				}
				time.Sleep(time.Second) // fake clock
			}
		},
	} {
		for _, kept := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, kept %v", name, kept), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := &http1Client{answer: 10 * time.Second, total: time.Minute}
					c.timeout = time.Hour
					over := make(chan bool)
					p := pipes(c, func(n int, conn net.Conn) {
						if kept {
							http.ReadRequest(bufio.NewReader(conn))
							io.WriteString(conn, gatetest.Numbered(n, 1))
						}
						if serve == nil {
							<-over
							return
						}
						serve(conn)
					})
					if kept {
						wantBody(t, c, request(t, http.MethodGet, "origin"), "1.1")
					}
					start := time.Now()
					_, _, err := fetch(t, c, request(t, http.MethodGet, "origin"))
					if took := time.Since(start); !errors.Is(err, os.ErrDeadlineExceeded) || took != c.answer {
						t.Errorf("%v after %v, want a timeout after %v", err, took, c.answer)
					}
					if got := p.conns.Load(); got != 1 {
						t.Errorf("%d connections", got)
					}
					close(over)
					p.Wait()
				})
			})
		}
	}
}

// TestTotalTime: the time to connect counts too, the time of a body does not.
func TestTotalTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &http1Client{answer: 10 * time.Second, total: 12 * time.Second}
		c.timeout = time.Hour
		defer c.close()
		pipes(c, func(_ int, conn net.Conn) { io.Copy(io.Discard, conn) })
		fast := c.connect
		c.connect = func(ctx context.Context, key originKey) (net.Conn, error) {
			time.Sleep(5 * time.Second) // fake clock
			return fast(ctx, key)
		}
		start := time.Now()
		_, _, err := fetch(t, c, request(t, http.MethodGet, "origin"))
		if took := time.Since(start); !errors.Is(err, os.ErrDeadlineExceeded) || took != c.total {
			t.Errorf("%v after %v, want a timeout after %v", err, took, c.total)
		}

		pipes(c, func(n int, conn net.Conn) {
			http.ReadRequest(bufio.NewReader(conn))
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n")
			for _, b := range "slow" {
				time.Sleep(time.Minute) // fake clock
				io.WriteString(conn, string(b))
			}
		})
		wantBody(t, c, request(t, http.MethodGet, "origin"), "slow")
	})
}

// TestInformational: the hook gets 1xx responses in order, and its error ends the request.
func TestInformational(t *testing.T) {
	const early = "HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\n"
	o := gatetest.StartLineOrigin(t, gatetest.Answering(func(n, i int, _ *http.Request) string {
		return "HTTP/1.1 100 Continue\r\n\r\n" + early + "HTTP/1.1 199 X\r\nContent-Length: 5\r\n\r\n" + gatetest.Numbered(n, i)
	}))
	c := newClient(t)
	var told []int
	var link string
	r := request(t, http.MethodGet, o.Host)
	traced := func(f func(int, textproto.MIMEHeader) error) *http.Request {
		return r.WithContext(httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got1xxResponse: f}))
	}
	resp, err := c.RoundTrip(traced(func(code int, h textproto.MIMEHeader) error {
		told, link = append(told, code), link+h.Get("Link")
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	if body, _ := io.ReadAll(resp.Body); string(body) != "1.1" || !slices.Equal(told, []int{100, 103, 199}) || link != "<a>" {
		t.Errorf("answered %q, hook called with %v and the links %q", body, told, link)
	}
	wantBody(t, c, r, "1.2") // without a hook

	enough := errors.New("enough")
	if _, err := c.RoundTrip(traced(func(int, textproto.MIMEHeader) error { return enough })); err != enough {
		t.Errorf("got %v", err)
	}
	wantBody(t, c, r, "2.1")
}

// TestHeadBound: the head of a response is bounded, with the 1xx responses before it.
func TestHeadBound(t *testing.T) {
	for name, flood := range map[string]string{
		"line":          "x",
		"fields":        "X-Field: value\r\n",
		"informational": "\r\nHTTP/1.1 103 Early Hints\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			written := make(chan int, 1)
			c := &http1Client{answer: patience, total: patience}
			pipes(c, func(_ int, conn net.Conn) {
				sum := 0
				defer func() { written <- sum }()
				http.ReadRequest(bufio.NewReader(conn))
				io.WriteString(conn, "HTTP/1.1 103 Early Hints\r\n")
				chunk := strings.Repeat(flood, 1000)
				for sum < 4*maxResponseHeader {
					n, err := io.WriteString(conn, chunk)
					sum += n
					if err != nil {
						return
					}
				}
			})
			_, _, err := fetch(t, c, request(t, http.MethodGet, "origin"))
			if err == nil || !strings.Contains(err.Error(), "longer than 1048576 bytes") {
				t.Errorf("got %v", err)
			}
			if got := receive(t, written, "the connection's end"); got > maxResponseHeader {
				t.Errorf("%d bytes were read", got)
			}
		})
	}
	t.Run("just so", func(t *testing.T) {
		const start, end = "HTTP/1.1 200 OK\r\nX: ", "\r\nContent-Length: 2097152\r\n\r\n"
		o := gatetest.StartLineOrigin(t, gatetest.Answering(func(int, int, *http.Request) string {
			return start + strings.Repeat("x", maxResponseHeader-len(start)-len(end)) + end + strings.Repeat("b", 2<<20)
		}))
		c := newClient(t)
		for range 2 { // the bound begins anew
			if _, body, err := fetch(t, c, request(t, http.MethodGet, o.Host)); err != nil || len(body) != 2<<20 {
				t.Errorf("%d bytes, %v", len(body), err)
			}
		}
		if got := o.Conns.Load(); got != 1 {
			t.Errorf("%d connections", got)
		}
	})
}

// TestRefusedFields: fields that Transport refuses to send are refused, without a connection.
func TestRefusedFields(t *testing.T) {
	o := gatetest.StartAnswering(t)
	c := newClient(t)
	wantBody(t, c, request(t, http.MethodGet, o.Host), "1.1")
	for name, value := range map[string]string{"A b": "x", "": "x", "A": "x\r\nB: y", "A:": "x", "C": "\x00"} {
		r := request(t, http.MethodGet, o.Host)
		r.Header[name] = []string{value}
		if _, _, err := fetch(t, c, r); err == nil {
			t.Errorf("%q: %q was sent", name, value)
		}
	}
	wantBody(t, c, request(t, http.MethodGet, o.Host), "1.2")
}

// TestContextEnds: when the context ends the connection is closed, before the head and in the
// middle of the body, and the error is the context's.
func TestContextEnds(t *testing.T) {
	why := errors.New("the client left")
	for name, before := range map[string]string{
		"before the head":   "",
		"within the head":   "HTTP/1.1 200 OK\r\nA",
		"before the body":   "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n",
		"within the body":   "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nbody",
		"within a chunk":    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nbody",
		"before a trailer":  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
		"until it's closed": "HTTP/1.1 200 OK\r\n\r\nbody",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &http1Client{answer: time.Minute, total: time.Minute}
				c.timeout = time.Hour
				closed := make(chan bool, 1)
				pipes(c, func(_ int, conn net.Conn) {
					http.ReadRequest(bufio.NewReader(conn))
					io.WriteString(conn, before)
					io.Copy(io.Discard, conn)
					closed <- true
				})
				ctx, cancel := context.WithCancelCause(t.Context())
				go func() {
					synctest.Wait() // until it waits for more
					cancel(why)
				}()
				_, _, err := fetch(t, c, request(t, http.MethodGet, "origin").WithContext(ctx))
				if err == nil || !strings.Contains(before, "\r\n\r\n") && err != why {
					t.Errorf("got %v", err)
				}
				<-closed
				if c.order.Len() > 0 {
					t.Error("the connection is idle")
				}
			})
		})
	}
}

// TestContextEndsWithBody: the context may end at the same time as the body. Then the connection is
// closed or idle, but never both.
func TestContextEndsWithBody(t *testing.T) {
	o := gatetest.StartAnswering(t)
	c := newClient(t)
	for range 300 {
		ctx, cancel := context.WithCancel(t.Context())
		resp, err := c.RoundTrip(request(t, http.MethodGet, o.Host).WithContext(ctx))
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		all.Go(cancel)
		all.Go(func() { io.ReadAll(resp.Body) })
		all.Go(func() { resp.Body.Close() })
		all.Wait()
		// It can't be repeated: a connection that is about to be closed would show.
		r := request(t, http.MethodDelete, o.Host)
		if _, _, err := fetch(t, c, r); err != nil {
			t.Fatal(err)
		}
	}
	if got := c.order.Len(); got != 1 {
		t.Errorf("%d are idle, want 1", got)
	}
}

// TestCloseEndsRead: Close ends a Read of the body that waits.
func TestCloseEndsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &http1Client{answer: time.Minute, total: time.Minute}
		pipes(c, func(_ int, conn net.Conn) {
			http.ReadRequest(bufio.NewReader(conn))
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nbody")
			io.Copy(io.Discard, conn)
		})
		r := request(t, http.MethodGet, "origin")
		resp, err := c.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			synctest.Wait()
			resp.Body.Close()
			resp.Body.Close()
		}()
		if b, err := io.ReadAll(resp.Body); err == nil || string(b) != "body" {
			t.Errorf("got %q, %v", b, err)
		}
	})
}

// TestHTTP1LikeNetHTTP: the client sends the same bytes as Transport, and returns the same response or error.
func TestHTTP1LikeNetHTTP(t *testing.T) {
	answers := []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: T\r\n\r\n4\r\nbody\r\n0\r\nT: x\r\n\r\n",
		"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nbody",
		"HTTP/1.0 200 OK\r\n\r\nbody",
		"HTTP/1.1 204 No Content\r\nContent-Length: 4\r\nConnection: close\r\n\r\n",
		"HTTP/1.1 304 Not Modified\r\nContent-Length: 4\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nbody",
		"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
		"HTTP/1.1 20 OK\r\n\r\n",
		"HTTP/1.1 099 X\r\nContent-Length: 4\r\n\r\nbody",
		"HTTP/1.1 999 X\r\nContent-Length: 4\r\n\r\nbody",
		"HTTP/1.1 101 X\r\nContent-Length: 4\r\n\r\nbody",
		"HTTP/1.1 102 X\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
		"HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nA : b\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nA b\r\n\r\n",
		"HTTP/1.1 200 OK\r\nA: b\r\n c\r\nPragma: no-cache\r\nContent-Length: 0\r\n\r\n",
		"nonsense\r\n\r\n",
		"\r\nHTTP/1.1 200 OK\r\n\r\n",
	}
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodDelete} {
		for _, answer := range answers {
			var sent [2]string
			var seen [2]string
			for i := range 2 {
				o := gatetest.StartLineOrigin(t, func(_ int, conn net.Conn) {
					var text bytes.Buffer
					http.ReadRequest(bufio.NewReader(io.TeeReader(conn, &text)))
					sent[i] = text.String()
					io.WriteString(conn, answer)
					conn.(*net.TCPConn).CloseWrite()
					io.Copy(io.Discard, conn)
				})
				r := request(t, method, o.Host)
				r.Host, r.Header["User-Agent"], r.Header["X-Two"] = "origin.example", []string{""}, []string{"a", "b"}
				c := newClient(t)
				trip := c.RoundTrip
				if i == 1 {
					tr := &http.Transport{DisableCompression: true}
					t.Cleanup(tr.CloseIdleConnections)
					trip = tr.RoundTrip
				}
				resp, err := trip(r)
				if err != nil {
					seen[i] = err.Error()
				} else {
					b, err := io.ReadAll(resp.Body)
					resp.Body.Close()
					seen[i] = fmt.Sprintf("%s %s %d %v %v %v %d %v %q %v", resp.Proto, resp.Status, resp.StatusCode, resp.Header, resp.Trailer, resp.TransferEncoding, resp.ContentLength, resp.Close, b, err)
				}
				c.close()
				receive(t, o.Ended, "the connection's end")
			}
			if sent[0] != sent[1] {
				t.Errorf("%s: sent %q, by Transport %q", method, sent[0], sent[1])
			}
			if seen[0] != seen[1] {
				t.Errorf("%s, answered with %q: got %s\nby Transport %s", method, answer, seen[0], seen[1])
			}
		}
	}
}

// TestGuardBeforeHTTP1: the guard has checked what the http1Client sends.
func TestGuardBeforeHTTP1(t *testing.T) {
	o := gatetest.StartAnswering(t)
	u := newTransport(t, Config{DialTimeout: patience, ResponseHeaderTimeout: patience, IdleTimeout: time.Minute}, &Descriptors{})
	if u.http1 == nil {
		t.Fatal("there is no http1Client")
	}
	if _, err := u.RoundTrip(request(t, http.MethodGet, o.Host)); !errors.Is(err, snapshot.ErrProhibited) {
		t.Errorf("got %v", err)
	}
	if got := o.Conns.Load(); got != 0 {
		t.Errorf("%d connections", got)
	}
}

// TestNoStatus: after an invalid status the connection is not used again.
func TestNoStatus(t *testing.T) {
	for _, status := range []string{"000", "007", "099", "+99", "101"} {
		t.Run(status, func(t *testing.T) {
			o := gatetest.StartLineOrigin(t, gatetest.Answering(func(n, i int, _ *http.Request) string {
				return "HTTP/1.1 " + status + " X\r\nContent-Length: 0\r\n\r\n" + gatetest.Numbered(n, i)
			}))
			c := newClient(t)
			resp, _, err := fetch(t, c, request(t, http.MethodGet, o.Host))
			if err != nil || resp.StatusCode >= 200 {
				t.Errorf("got %v, %v", resp, err)
			}
			if c.order.Len() > 0 {
				t.Error("the connection is idle")
			}
		})
	}
}
