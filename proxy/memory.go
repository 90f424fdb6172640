package proxy

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// maxInFlight bounds the memory, in bytes, that requests and responses in progress take for all
// clients together, beyond what each connection has for one request without large buffers.
const maxInFlight = 256 << 20

// A memoryBudget counts what is taken of maxInFlight.
type memoryBudget struct{ used atomic.Int64 }

// A share says how much of the budget a client may take: what it has, times the share, must not
// exceed what is free. So a single client leaves a part free, and every further client
// gets less, but something.
type share int64

const (
	forStreams  share = 1 // accept another HTTP/2 request: up to 1/2 for a single client
	forProgress share = 2 // and send it to the origin: up to 1/3
	forBuffers  share = 4 // large windows and buffers, without which it is slower: up to 1/5
)

// Costs of an HTTP/2 request in bytes, without its head. The first on a connection is free: it
// belongs to what a connection costs.
const (
	streamCost   = 32 << 10 // goroutine, request and response buffer
	progressCost = 48 << 10 // goroutine of Transport, smallBuffer, smallWindow
)

// A clientMemory counts what one client has of the budget. A nil clientMemory is unlimited.
type clientMemory struct {
	budget *memoryBudget

	mu      sync.Mutex
	used    int64
	waiting []chan struct{} // for progressCost, first come first served; closed when it is taken
}

// take takes n bytes, or returns false if that is more than the share.
func (m *clientMemory) take(n int64, s share) bool {
	if m == nil || n == 0 {
		return true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.takeLocked(n, s)
}

// takeLocked is take for callers that hold mu.
func (m *clientMemory) takeLocked(n int64, s share) bool {
	others := m.budget.used.Add(n) - n // first, so that clients at the same time can't exceed it together
	if int64(s)*(m.used+n) > maxInFlight-others {
		m.budget.used.Add(-n)
		return false
	}
	m.used += n
	return true
}

// give returns n bytes.
func (m *clientMemory) give(n int64) {
	if m == nil || n == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used -= n
	m.budget.used.Add(-n)
	m.wakeLocked()
}

// wakeLocked lets the requests that have waited longest go on, as far as there is room. The caller holds mu.
func (m *clientMemory) wakeLocked() {
	for len(m.waiting) > 0 && m.takeLocked(progressCost, forProgress) {
		close(m.waiting[0])
		m.waiting = m.waiting[1:]
	}
}

var errNoMemory = errors.New("too many requests are in progress")

// awaitProgress takes progressCost as soon as there is room, or returns an error when ctx ends or the patience does.
func (m *clientMemory) awaitProgress(ctx context.Context, patience time.Duration) error {
	m.mu.Lock()
	if len(m.waiting) == 0 && m.takeLocked(progressCost, forProgress) {
		m.mu.Unlock()
		return nil
	}
	ready := make(chan struct{})
	m.waiting = append(m.waiting, ready)
	m.mu.Unlock()

	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	again := time.NewTicker(time.Second) // other clients may have made room
	defer again.Stop()
	for {
		select {
		case <-ready:
			return nil
		case <-again.C:
			m.mu.Lock()
			m.wakeLocked()
			m.mu.Unlock()
		case <-ctx.Done():
			return m.cancel(ready, ctx.Err())
		case <-timeout.C:
			return m.cancel(ready, errNoMemory)
		}
	}
}

// cancel ends waiting. If it has just ended with success, err is not returned.
func (m *clientMemory) cancel(ready chan struct{}, err error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := slices.Index(m.waiting, ready)
	if i < 0 {
		return nil
	}
	m.waiting = slices.Delete(m.waiting, i, i+1)
	return err
}

// A reservation is what one request has of its client's memory.
type reservation struct {
	client *clientMemory

	mu    sync.Mutex
	taken int64
	over  bool
}

// take takes n bytes until end, or returns false if there is no memory for them. A nil reservation is unlimited.
func (r *reservation) take(n int64, s share) bool {
	if r == nil {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over || !r.client.take(n, s) {
		return false
	}
	r.taken += n
	return true
}

// end returns everything. Nothing can be taken after that.
func (r *reservation) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.client.give(r.taken)
	r.taken, r.over = 0, true
}

// What a header takes in bytes: each field beside its own, and what is free for a message whose other costs
// are not counted.
const (
	fieldCost = 256
	headFree  = 32 << 10
)

// headCost returns about how many bytes of memory a header takes.
func headCost(h http.Header) (n int64) {
	for name, values := range h {
		n += int64(len(name))
		for _, v := range values {
			n += int64(len(v)) + fieldCost
		}
	}
	return n
}

// takeHead takes what a header costs beyond headFree.
func (r *reservation) takeHead(h http.Header) bool {
	cost := headCost(h)
	return cost <= headFree || r.take(cost-headFree, forProgress)
}

// flushEvery is which of the HTTP/2 requests of a connection is flushed even if there is no other at the time.
const flushEvery = 4

// flushStream waits until the client has taken what net/http has of a small response. Else net/http would wait
// for that behind the handler, with a goroutine and a buffer that do not count any more. It costs a frame more,
// so it is left out for most requests that come one by one: the first that a client does not take makes
// two in progress of the next.
func (c *clientConn) flushStream(w http.ResponseWriter) {
	if c == nil {
		return
	}
	if n := c.served.Add(1); n%flushEvery == 0 || c.streams.Load() > 1 {
		_ = http.NewResponseController(w).Flush() // bounded by the deadline that letGo has set
	}
}

// admitStream waits until there is memory for an HTTP/2 request, and returns what must be called when
// the request has been served. A client for whose requests there is none gets an error at once if too many
// of them wait already, else when the patience ends.
func (c *clientConn) admitStream(r *http.Request, patience time.Duration) (end func(), err error) {
	if c == nil || c.memory == nil {
		return func() {}, nil
	}
	if c.streams.Add(1) == 1 {
		return func() { c.streams.Add(-1) }, nil
	}
	cost := streamCost + headCost(r.Header)
	if !c.memory.take(cost, forStreams) {
		c.streams.Add(-1)
		return nil, errNoMemory
	}
	if err := c.memory.awaitProgress(r.Context(), patience); err != nil {
		c.memory.give(cost)
		c.streams.Add(-1)
		return nil, err
	}
	return func() {
		c.memory.give(cost + progressCost)
		c.streams.Add(-1)
	}, nil
}
