package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
)

func newClients(n int) (*memoryBudget, []*clientMemory) {
	b, all := &memoryBudget{}, make([]*clientMemory, n)
	for i := range all {
		all[i] = &clientMemory{budget: b}
	}
	return b, all
}

// takeAll takes pieces of a share until there are no more, and returns their sum.
func takeAll(m *clientMemory, piece int64, s share) (sum int64) {
	for m.take(piece, s) {
		sum += piece
	}
	return sum
}

// One client leaves memory to others, and every further client gets some.
func TestMemoryShares(t *testing.T) {
	const piece = 64 << 10
	for _, c := range []struct {
		share share
		part  int64
	}{{forStreams, 2}, {forProgress, 3}, {forBuffers, 5}} {
		_, clients := newClients(1)
		if got := takeAll(clients[0], piece, c.share); got > maxInFlight/c.part || got < maxInFlight/c.part-piece {
			t.Errorf("share %d: one client gets %d bytes, want 1/%d of %d", c.share, got, c.part, maxInFlight)
		}
	}
	b, clients := newClients(10)
	var sum int64
	for i, m := range clients { // each gets half of what is left
		got := takeAll(m, piece, forStreams)
		if sum += got; got < maxInFlight>>(i+1)-piece {
			t.Errorf("client %d gets %d bytes", i, got)
		}
	}
	if sum != b.used.Load() || sum > maxInFlight {
		t.Errorf("%d bytes are given out and %d counted, of %d", sum, b.used.Load(), maxInFlight)
	}
	for _, m := range clients {
		m.give(m.used)
	}
	if n := b.used.Load(); n != 0 {
		t.Errorf("%d bytes are counted after all were returned", n)
	}
}

// Requests wait in order of arrival, for memory of their own client or of others, until they are canceled or
// their patience ends.
func TestMemoryWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, clients := newClients(2)
		m := clients[0]
		taken := takeAll(m, progressCost, forProgress)
		var order []int
		wait := func(ctx context.Context, n int) chan error {
			done := make(chan error, 1)
			go func() {
				err := m.awaitProgress(ctx, time.Minute)
				if err == nil {
					order = append(order, n)
				}
				done <- err
			}()
			synctest.Wait()
			return done
		}
		ctx, cancel := context.WithCancel(t.Context())
		first, second, third := wait(t.Context(), 1), wait(ctx, 2), wait(t.Context(), 3)
		cancel()
		if err := <-second; !errors.Is(err, context.Canceled) {
			t.Errorf("a canceled request: %v", err)
		}
		m.give(progressCost)
		if err := <-first; err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if len(order) != 1 || order[0] != 1 {
			t.Errorf("requests %v went on, want only 1", order)
		}
		if err := <-third; !errors.Is(err, errNoMemory) {
			t.Errorf("a request that waited too long: %v", err)
		}
		m.give(taken)

		other := takeAll(clients[1], progressCost, forStreams)
		took := takeAll(m, progressCost, forProgress)
		fourth := wait(t.Context(), 4)
		clients[1].give(other) // which does not tell m
		if err := <-fourth; err != nil {
			t.Errorf("a request that waited for other clients: %v", err)
		}
		m.give(took + progressCost)
		if n := b.used.Load(); n != 0 || len(m.waiting) != 0 {
			t.Errorf("%d bytes are counted and %d requests wait, want none", n, len(m.waiting))
		}
	})
}

// After a request has ended, a goroutine of it that still runs can't take memory any more.
func TestReservationEnds(t *testing.T) {
	b, clients := newClients(1)
	r := reservation{client: clients[0]}
	if !r.take(1000, forBuffers) {
		t.Error("there is no memory")
	}
	r.end()
	if r.take(1000, forBuffers) || b.used.Load() != 0 {
		t.Errorf("%d bytes are counted after the end", b.used.Load())
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
	const most = maxInFlight/5 + conns*streams*(smallWindow+smallBuffer)
	if n := sent.Load(); n > most {
		t.Errorf("%d MiB are on their way to clients that take nothing, want at most %d", n>>20, most>>20)
	}
	if n := w.gate.crowd.memory.used.Load(); n > maxInFlight/2 {
		t.Errorf("one client has %d MiB, want at most half of %d", n>>20, maxInFlight>>20)
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
	used := &w.gate.crowd.memory.used
	// Of a connection, those before the first that is flushed do not count, nor does that.
	const want = 2 * (streams - flushEvery) * (streamCost + progressCost)
	eventually(t, "the requests count", func() bool { return used.Load() >= want })
	w.gate.crowd.mu.Lock()
	var conns int
	for _, c := range w.gate.crowd.clients {
		conns += c.conns
	}
	w.gate.crowd.mu.Unlock()
	if conns != 2 {
		t.Errorf("%d connections are counted, want 2", conns)
	}
	w.gate.inner.Close()
	eventually(t, "all memory is returned", func() bool { return used.Load() == 0 })
}

// withoutMemory returns a reservation for whose client there is no memory.
func withoutMemory() *reservation {
	_, clients := newClients(1)
	takeAll(clients[0], 1<<10, forStreams)
	return &reservation{client: clients[0]}
}

// A head for which there is no memory is read only as far as it is free.
func TestHeadWithoutMemory(t *testing.T) {
	page := strings.Repeat("x", 100<<10)
	tee := newTee(io.NopCloser(strings.NewReader(page)), 512<<10)
	tee.memory = withoutMemory()
	got, err := io.ReadAll(scannerSide{tee})
	if len(got) != keptFree || !errors.Is(err, errLimit) {
		t.Errorf("the scanner gets %d bytes and %v, want %d and %v", len(got), err, keptFree, errLimit)
	}
	tee.leave()
	if rest, err := io.ReadAll(tee); string(rest) != page || err != nil {
		t.Errorf("the client gets %d bytes and %v", len(rest), err)
	}
}

// Long heads and uploads for which there is no memory are refused, ordinary ones are not.
func TestRefusedWithoutMemory(t *testing.T) {
	long := strings.Repeat("x", 2*headFree)
	w := newWorld(t, options{handler: func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/long" {
			rw.Header().Set("Long", long)
		}
		io.Copy(io.Discard, r.Body)
	}})
	w.ways(t, func(t *testing.T, v way) {
		v.get(t, "/") // the client's connection is there
		w.gate.crowd.mu.Lock()
		for _, c := range w.gate.crowd.clients {
			takeAll(&c.memory, 1<<10, forStreams)
		}
		w.gate.crowd.mu.Unlock()
		resp, _ := v.get(t, "/")
		wantStatus(t, resp, http.StatusOK)
		resp, _ = v.get(t, "/long")
		wantStatus(t, resp, http.StatusServiceUnavailable)
		wantHeader(t, resp, "Retry-After", "1")
		if v.name != "https HTTP/2" {
			resp, _ = v.get(t, "/", "Long", long)
			wantStatus(t, resp, http.StatusServiceUnavailable)
		}
		w.gate.crowd.mu.Lock()
		defer w.gate.crowd.mu.Unlock()
		for _, c := range w.gate.crowd.clients {
			c.memory.give(c.memory.used)
		}
	})
}

func TestUploadCost(t *testing.T) {
	for length, want := range map[int64]int64{0: 0, 100: 0, 16 << 10: 0, 100 << 10: 84 << 10, 1 << 40: 496 << 10, -1: 496 << 10} {
		if got := uploadCost(length); got != want {
			t.Errorf("%d bytes: got %d, want %d", length, got, want)
		}
	}
}
