package proxy_test

import (
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"robotsgate/proxy"
	"robotsgate/proxy/internal/memory"
	"robotsgate/proxy/internal/proxytest"
	"robotsgate/proxy/internal/response"
)

// exhaust takes all memory of a budget, for many clients, of which each gets half of the rest.
// It returns what gives it back.
func exhaust(b *memory.Budget) (release func()) {
	taken := map[*memory.Client]int64{}
	for range 40 {
		c := &memory.Client{Budget: b}
		for piece := int64(memory.Limit); piece > 0; piece /= 2 {
			for c.Take(piece, memory.ForStreams) {
				taken[c] += piece
			}
		}
	}
	return func() {
		for c, n := range taken {
			c.Release(n)
		}
	}
}

// stalled sends requests on the streams of an HTTP/2 connection, takes nothing of any body, and counts heads.
func stalled(t *testing.T, g *proxytest.Gate, path string, streams int, heads *atomic.Int64) net.Conn {
	conn, f := g.Frames(t, path, 0)
	for i := 1; i < streams; i++ {
		proxytest.WriteHead(f, uint32(1+2*i), true, ":method", "GET", ":scheme", "https", ":authority", proxytest.Host(g.HTTPS), ":path", path, "user-agent", "ExampleBot")
	}
	go func() {
		for {
			frame, err := f.ReadFrame()
			if err != nil {
				conn.Close()
				return
			}
			if _, ok := frame.(*http2.HeadersFrame); ok && heads != nil {
				heads.Add(1)
			}
		}
	}()
	return conn
}

// Clients that ask for large bodies over HTTP/2 and take nothing of them do not make the gate hold them, and other
// clients, even of the same address, are served.
func TestStalledStreams(t *testing.T) {
	var sent, requests atomic.Int64
	g := proxytest.Start(t, proxytest.Options{
		Proxy: func(o *proxy.Options) { o.Done = func(*proxy.Record) {} },
		Handler: func(rw http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/large" {
				io.WriteString(rw, "small")
				return
			}
			requests.Add(1)
			rw.Header().Set("Content-Length", strconv.Itoa(64<<20))
			for block := make([]byte, 4<<10); ; {
				if _, err := rw.Write(block); err != nil {
					return
				}
				http.NewResponseController(rw).Flush()
				sent.Add(int64(len(block)))
			}
		},
	})
	const conns, streams = 8, 100
	for range conns {
		stalled(t, g, "/large", streams, nil)
	}
	proxytest.Eventually(t, "requests reach the origin", func() bool { return requests.Load() > conns*streams/2 })
	for before := int64(-1); before != sent.Load(); { // until nothing more is sent for a while
		before = sent.Load()
		for range 20 {
			g.Ways(t, func(t *testing.T, v proxytest.Way) {
				if resp, body := v.Get(t, "/"); resp.StatusCode != http.StatusOK || body != "small" {
					t.Errorf("another client gets %s, %q", resp.Status, body)
				}
			})
		}
	}
	const smallWindow = 16 << 10 // what an origin may send ahead if there is no memory for more
	const most = memory.Limit/5 + conns*streams*(smallWindow+response.SmallBuffer)
	if n := sent.Load(); n > most {
		t.Errorf("%d MiB are on their way to clients that take nothing, want at most %d", n>>20, most>>20)
	}
	if n := g.Proxy.Memory().Used(); n > memory.Limit/2 {
		t.Errorf("one client has %d MiB, want at most half of %d", n>>20, memory.Limit>>20)
	}
}

// A small response counts until its client has taken it, although the gate has nothing more to do with it; when the client has
// left, everything is returned.
func TestStalledSmallResponses(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{Proxy: func(o *proxy.Options) { o.Done = func(*proxy.Record) {} }})
	const streams = 50
	var heads atomic.Int64
	var clients []net.Conn
	for range 2 {
		clients = append(clients, stalled(t, g, "/private/refused", streams, &heads))
	}
	proxytest.Eventually(t, "the heads come", func() bool { return heads.Load() == 2*streams })
	used := g.Proxy.Memory().Used
	// Of a connection, those before the first that is flushed do not count, nor does that.
	const want = 2 * (streams - 4) * (memory.StreamCost + memory.ProgressCost)
	proxytest.Eventually(t, "the requests count", func() bool { return used() >= want })
	if conns := g.Proxy.Connections().Open; conns != 2 {
		t.Errorf("%d connections are counted, want 2", conns)
	}
	for _, c := range clients {
		c.Close()
	}
	proxytest.Eventually(t, "all memory is returned", func() bool { return used() == 0 })
}

// Long heads and uploads for which there is no memory are refused, ordinary ones are not.
func TestRefusedWithoutMemory(t *testing.T) {
	long := strings.Repeat("x", 2*memory.FreeHeader)
	g := proxytest.Start(t, proxytest.Options{Handler: func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/long" {
			rw.Header().Set("Long", long)
		}
		io.Copy(io.Discard, r.Body)
	}})
	g.Ways(t, func(t *testing.T, v proxytest.Way) {
		defer exhaust(g.Proxy.Memory())()
		resp, _ := v.Get(t, "/")
		proxytest.WantStatus(t, resp, http.StatusOK)
		resp, _ = v.Get(t, "/long")
		proxytest.WantStatus(t, resp, http.StatusServiceUnavailable)
		proxytest.WantHeader(t, resp, "Retry-After", "1")
		if v.Name != "https HTTP/2" {
			resp, _ = v.Get(t, "/", "Long", long)
			proxytest.WantStatus(t, resp, http.StatusServiceUnavailable)
		}
		if v.Name != "http" { // the connection to the origin may be one over HTTP/2
			resp, _ = proxytest.Send(t, v.Client, http.MethodPost, v.Origin+"/", strings.NewReader(long[:16<<10]))
			proxytest.WantStatus(t, resp, http.StatusOK)
			resp, _ = proxytest.Send(t, v.Client, http.MethodPost, v.Origin+"/", strings.NewReader(long))
			proxytest.WantStatus(t, resp, http.StatusServiceUnavailable)
			proxytest.WantHeader(t, resp, "Retry-After", "1")
		}
	})
}

// Beside a connection's first request, which is free, an HTTP/2 request is reset: at once if there is no memory for it,
// after IdleTimeout if there is none to send it on.
func TestResetWithoutMemory(t *testing.T) {
	for _, c := range []struct {
		name string
		left int64 // of the memory
		idle time.Duration
	}{
		{"no memory", 0, time.Minute}, // more than the test waits for
		{"no memory to send it on", 64 << 10, proxytest.Short},
	} {
		t.Run(c.name, func(t *testing.T) {
			answer := make(chan bool)
			g := proxytest.Start(t, proxytest.Options{
				Proxy:   func(o *proxy.Options) { o.Limits.IdleTimeout = c.idle },
				Handler: func(http.ResponseWriter, *http.Request) { <-answer },
			})
			defer close(answer)
			other := memory.Client{Budget: g.Proxy.Memory()}
			if !other.Take(memory.Limit-c.left, memory.ForStreams) {
				t.Fatal("the memory is not taken")
			}
			conn, f := g.Frames(t, "/first", 0)
			proxytest.Eventually(t, "the first request reaches the origin", func() bool { return len(g.Arrived()) == 1 })
			begun := time.Now()
			proxytest.WriteHead(f, 3, true, ":method", "GET", ":scheme", "https", ":authority", proxytest.Host(g.HTTPS), ":path", "/second", "user-agent", "ExampleBot")
			conn.SetReadDeadline(begun.Add(proxytest.Patience))
			for {
				frame, err := f.ReadFrame()
				if err != nil {
					t.Fatalf("the second request is not reset: %v", err)
				}
				if h := frame.Header(); h.Type == http2.FrameRSTStream && h.StreamID == 3 {
					break
				}
			}
			if waited := time.Since(begun); c.left > 0 && waited < c.idle {
				t.Errorf("it is reset after %v, want %v", waited, c.idle)
			}
			proxytest.WantArrived(t, g, "GET /first")
		})
	}
}

// manyFields returns as many fields, each on a line.
func manyFields(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("x" + strconv.Itoa(i) + ":\r\n")
	}
	return b.String()
}

// A head of many short fields, which take far more memory than bytes, ends the response; so does a longer head than there
// is memory for, before its end.
func TestHeadOfManyFields(t *testing.T) {
	t.Parallel() // it waits most of the time
	heads := map[string]string{
		"/many": manyFields(1000) + "\r\n", "/too-many": manyFields(4096), "/unfinished": manyFields(200),
	}
	g := proxytest.Start(t, proxytest.Options{Handler: func(rw http.ResponseWriter, r *http.Request) {
		conn, _, err := http.NewResponseController(rw).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n"+heads[r.URL.Path])
		io.Copy(io.Discard, conn) // until the gate closes it
	}})
	client := g.ClientVia("http", g.Addr, false)
	resp, _ := proxytest.Send(t, client, http.MethodGet, g.HTTP+"/many", nil)
	proxytest.WantStatus(t, resp, http.StatusOK)
	resp, _ = proxytest.Send(t, client, http.MethodGet, g.HTTP+"/too-many", nil)
	proxytest.WantStatus(t, resp, http.StatusBadGateway)
	exhaust(g.Proxy.Memory())
	resp, _ = proxytest.Send(t, client, http.MethodGet, g.HTTP+"/unfinished", nil)
	proxytest.WantStatus(t, resp, http.StatusServiceUnavailable)
}
