package proxy_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"robotsgate/internal/gatetest"
	"robotsgate/internal/record"
	"robotsgate/policy"
	"robotsgate/proxy"
	"robotsgate/proxy/internal/proxytest"
)

// TestSoak puts the gate under clients that leave at any time and origins that
// break, and looks whether anything stays behind: goroutines, file descriptors,
// memory.
func TestSoak(t *testing.T) {
	last := gatetest.Size(3*time.Second, 30*time.Second)
	s := &soak{random: gatetest.Random(t)}
	s.Gate = proxytest.Start(t, proxytest.Options{
		Handler: s.serve, RobotsTxt: s.robots, Forget: true,
		Proxy: func(o *proxy.Options) {
			o.Done, o.Log = func(*record.Record) {}, slog.New(slog.DiscardHandler)
			o.Limits.HeaderTimeout, o.Limits.IdleTimeout, o.Silence = 300*time.Millisecond, 300*time.Millisecond, 300*time.Millisecond
			o.Settings.Tags.HeadTimeout = 100 * time.Millisecond
		},
		// Asked for again all the time; while it can't be had, the last good copy serves.
		Engine: func(c *policy.Config) {
			c.Log = slog.New(slog.DiscardHandler)
			c.Robots.MinAge, c.Robots.MaxAge, c.Robots.Timeout = 0, 10*time.Millisecond, time.Second
		},
	})
	s.run(t, time.Second) // until everything has been used once
	before := s.settle()
	s.run(t, last)
	after := before
	defer func() {
		if t.Failed() {
			t.Logf("after: %+v, before: %+v", after, before)
			pprof.Lookup("goroutine").WriteTo(t.Output(), 1)
		}
	}()
	proxytest.Eventually(t, "all is as it was before", func() bool {
		after = s.settle()
		return after.goroutines <= before.goroutines+5 && after.files <= before.files+5 && after.heap <= before.heap+8<<20
	})
	t.Logf("%d requests, %d answers in %v; before %+v, after %+v", s.asked.Load(), s.answered.Load(), last, before, after)
	if s.answered.Load() < s.asked.Load()/4 {
		t.Errorf("of %d requests only %d were answered", s.asked.Load(), s.answered.Load())
	}
	if resp, _ := s.Get(s.HTTP + "/"); resp.StatusCode != 200 && resp.StatusCode != 403 {
		t.Errorf("afterwards a request is answered with %d", resp.StatusCode)
	}
}

type soak struct {
	*proxytest.Gate
	random          *rand.Rand
	asked, answered atomic.Int64
}

// A load is what a process holds.
type load struct {
	goroutines, files int
	heap              uint64
}

// settle closes what is only kept for the next request, and measures.
func (s *soak) settle() load {
	s.Transport.Close()
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	files, _ := os.ReadDir("/proc/self/fd") // none where there is no /proc
	return load{runtime.NumGoroutine(), len(files), m.HeapAlloc}
}

// robots is out one time in three.
func (s *soak) robots(w http.ResponseWriter, r *http.Request) {
	switch s.random.IntN(6) {
	case 0:
		w.WriteHeader(http.StatusServiceUnavailable)
	case 1:
		hangUp(w)
	default:
		io.WriteString(w, proxytest.ExampleRobots)
	}
}

// serve is an origin that breaks in all the ways that it can.
func (s *soak) serve(w http.ResponseWriter, r *http.Request) {
	switch path, _, _ := strings.Cut(r.URL.Path, "."); path {
	case "/page":
		w.Header().Set("Content-Type", "text/html")
		io.WriteString(w, `<head><meta name=robots content=noindex></head>`+strings.Repeat("x", s.random.IntN(100_000)))
	case "/long":
		for range 100 {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				return
			}
		}
	case "/cut":
		w.Header().Set("Content-Length", "1000")
		io.WriteString(w, "the beginning")
		panic(http.ErrAbortHandler)
	case "/reset":
		hangUp(w)
	case "/silent":
		io.Copy(io.Discard, r.Body) // else this server does not see the connection end
		w.Header().Set("Content-Type", "text/html")
		io.WriteString(w, "<head>")
		http.NewResponseController(w).Flush()
		<-r.Context().Done()
	case "/events":
		w.Header().Set("Content-Type", "text/event-stream")
		for range 1000 {
			if _, err := io.WriteString(w, "data: x\n\n"); err != nil {
				return
			}
			http.NewResponseController(w).Flush()
		}
	case "/socket":
		conn, buf, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return // HTTP/2
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		io.CopyN(conn, buf, int64(s.random.IntN(10)))
	default:
		io.Copy(io.Discard, r.Body)
		io.WriteString(w, "fine")
	}
}

// hangUp breaks a connection off, or only a stream of it.
func hangUp(w http.ResponseWriter) {
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		conn.(interface{ SetLinger(int) error }).SetLinger(0)
		conn.Close()
		return
	}
	panic(http.ErrAbortHandler)
}

// run asks from many sides until the time is up.
func (s *soak) run(t *testing.T, last time.Duration) {
	ctx, cancel := context.WithTimeout(t.Context(), last)
	defer cancel()
	clients := []*http.Client{s.ClientVia("http", s.Addr, false), s.ClientVia("http", s.Addr, true)}
	var all sync.WaitGroup
	for range 32 {
		all.Go(func() {
			for ctx.Err() == nil {
				s.asked.Add(1)
				if s.random.IntN(3) == 0 {
					s.speak()
				} else {
					s.ask(ctx, clients[s.random.IntN(len(clients))])
				}
			}
		})
	}
	all.Wait()
	for _, c := range clients {
		c.CloseIdleConnections()
	}
}

func one[T any](random *rand.Rand, of ...T) T { return of[random.IntN(len(of))] }

// ask is a client that may leave at any time.
func (s *soak) ask(ctx context.Context, client *http.Client) {
	ctx, cancel := context.WithTimeout(ctx, one(s.random, 5*time.Millisecond, 50*time.Millisecond, 5*time.Second))
	defer cancel()
	url := one(s.random, s.HTTP, s.HTTPS) + one(s.random, "/", "/page.html", "/page.html", "/private/", "/long.bin", "/cut", "/reset", "/silent", "/events", "/robots.txt")
	var body io.Reader
	if s.random.IntN(4) == 0 {
		body = bytes.NewReader(make([]byte, s.random.IntN(300_000)))
	}
	req, err := http.NewRequestWithContext(ctx, one(s.random, http.MethodGet, http.MethodPost), url, body)
	if err != nil {
		panic(err)
	}
	req.Header.Set("User-Agent", "ExampleBot/1.0")
	resp, err := client.Do(req)
	if err != nil {
		return
	}
	defer resp.Body.Close()
	s.answered.Add(1)
	if s.random.IntN(2) == 0 {
		io.CopyN(io.Discard, resp.Body, int64(s.random.IntN(10_000)))
		return
	}
	io.Copy(io.Discard, resp.Body)
}

// speak sends bytes that may be no request at all, and goes at some point.
func (s *soak) speak() {
	conn, err := net.Dial("tcp", s.Addr)
	if err != nil {
		return
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(time.Second))
	whole := one(s.random,
		"GET "+s.HTTP+"/page.html HTTP/1.1\r\nHost: x\r\n\r\nGET "+s.HTTP+"/ HTTP/1.1\r\nHost: x\r\n\r\n",
		"POST "+s.HTTP+"/up HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nnot all of it",
		"POST "+s.HTTP+"/up HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\n",
		"GET "+s.HTTP+"/socket HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello, socket",
		"CONNECT "+proxytest.Host(s.HTTPS)+" HTTP/1.1\r\n\r\n\x16\x03\x01\x02\x00\x01\x00",
		"CONNECT "+proxytest.Host(s.HTTP)+" HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\nHost: "+proxytest.Host(s.HTTP)+"\r\n\r\n",
		"GET "+s.HTTP+"/long.bin HTTP/1.0\r\n\r\n",
		"\x16\x03\x01garbage", "\x05\x01\x00", "\r\n\r\n", "GET",
	)
	if s.random.IntN(8) == 0 {
		fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\n\r\n", proxytest.Host(s.HTTPS))
		if _, err := proxytest.ReadHead(conn); err == nil {
			tls.Client(conn, &tls.Config{RootCAs: s.Roots, ServerName: "127.0.0.1"}).Handshake()
		}
		return
	}
	io.WriteString(conn, whole[:1+s.random.IntN(len(whole))])
	if s.random.IntN(2) == 0 {
		conn.(*net.TCPConn).CloseWrite()
	}
	if n, _ := io.CopyN(io.Discard, conn, int64(s.random.IntN(50_000))); n > 0 {
		s.answered.Add(1)
	}
}
