package proxy

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"robotsgate/proxy/internal/memory"
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
func (w *world) stalled(t *testing.T, path string, streams int, heads *atomic.Int64) {
	conn, f := w.frames(t, path, 0)
	for i := 1; i < streams; i++ {
		writeHead(f, uint32(1+2*i), true, ":method", "GET", ":scheme", "https", ":authority", host(w.https), ":path", path, "user-agent", "ExampleBot")
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
}

// Clients that ask for large bodies over HTTP/2 and take nothing of them do not make the gate hold them, and other
// clients, even of the same address, are served.
func TestStalledStreams(t *testing.T) {
	var sent, requests atomic.Int64
	w := newWorld(t, options{
		gate: func(o *Options) { o.Done = func(*Record) {} },
		handler: func(rw http.ResponseWriter, r *http.Request) {
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
		w.stalled(t, "/large", streams, nil)
	}
	eventually(t, "requests reach the origin", func() bool { return requests.Load() > conns*streams/2 })
	for before := int64(-1); before != sent.Load(); { // until nothing more is sent for a while
		before = sent.Load()
		for range 20 {
			w.ways(t, func(t *testing.T, v way) {
				if resp, body := v.get(t, "/"); resp.StatusCode != http.StatusOK || body != "small" {
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
	if n := w.gate.memory.Used(); n > memory.Limit/2 {
		t.Errorf("one client has %d MiB, want at most half of %d", n>>20, memory.Limit>>20)
	}
}

// A small response counts until its client has taken it, although the gate has nothing more to do with it; when the client has
// left, everything is returned.
func TestStalledSmallResponses(t *testing.T) {
	w := newWorld(t, options{gate: func(o *Options) { o.Done = func(*Record) {} }})
	const streams = 50
	var heads atomic.Int64
	for range 2 {
		w.stalled(t, "/private/refused", streams, &heads)
	}
	eventually(t, "the heads come", func() bool { return heads.Load() == 2*streams })
	used := w.gate.memory.Used
	// Of a connection, those before the first that is flushed do not count, nor does that.
	const want = 2 * (streams - 4) * (memory.StreamCost + memory.ProgressCost)
	eventually(t, "the requests count", func() bool { return used() >= want })
	if conns := w.gate.Connections().Open; conns != 2 {
		t.Errorf("%d connections are counted, want 2", conns)
	}
	w.gate.inner.Close()
	eventually(t, "all memory is returned", func() bool { return used() == 0 })
}

// Long heads and uploads for which there is no memory are refused, ordinary ones are not.
func TestRefusedWithoutMemory(t *testing.T) {
	long := strings.Repeat("x", 2*memory.FreeHeader)
	w := newWorld(t, options{handler: func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/long" {
			rw.Header().Set("Long", long)
		}
		io.Copy(io.Discard, r.Body)
	}})
	w.ways(t, func(t *testing.T, v way) {
		defer exhaust(&w.gate.memory)()
		resp, _ := v.get(t, "/")
		wantStatus(t, resp, http.StatusOK)
		resp, _ = v.get(t, "/long")
		wantStatus(t, resp, http.StatusServiceUnavailable)
		wantHeader(t, resp, "Retry-After", "1")
		if v.name != "https HTTP/2" {
			resp, _ = v.get(t, "/", "Long", long)
			wantStatus(t, resp, http.StatusServiceUnavailable)
		}
		if v.name != "http" { // the connection to the origin may be one over HTTP/2
			resp, _ = send(t, v.client, http.MethodPost, v.origin+"/", strings.NewReader(long[:16<<10]))
			wantStatus(t, resp, http.StatusOK)
			resp, _ = send(t, v.client, http.MethodPost, v.origin+"/", strings.NewReader(long))
			wantStatus(t, resp, http.StatusServiceUnavailable)
			wantHeader(t, resp, "Retry-After", "1")
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
		{"no memory to send it on", 64 << 10, short},
	} {
		t.Run(c.name, func(t *testing.T) {
			answer := make(chan bool)
			w := newWorld(t, options{
				gate:    func(o *Options) { o.Limits.IdleTimeout = c.idle },
				handler: func(http.ResponseWriter, *http.Request) { <-answer },
			})
			defer close(answer)
			other := memory.Client{Budget: &w.gate.memory}
			if !other.Take(memory.Limit-c.left, memory.ForStreams) {
				t.Fatal("the memory is not taken")
			}
			conn, f := w.frames(t, "/first", 0)
			eventually(t, "the first request reaches the origin", func() bool { return len(w.arrived()) == 1 })
			begun := time.Now()
			writeHead(f, 3, true, ":method", "GET", ":scheme", "https", ":authority", host(w.https), ":path", "/second", "user-agent", "ExampleBot")
			conn.SetReadDeadline(begun.Add(patience))
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
			wantArrived(t, w, "GET /first")
		})
	}
}
