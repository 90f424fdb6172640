// Package memory bounds the memory that requests in progress take for all clients together, and divides it among
// the clients. A [Client] has a share of a [Budget]; a [Reservation] is what one request has taken of it.
package memory

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Limit bounds the memory, in bytes, that requests and responses in progress take for all
// clients together, beyond what each connection has for one request without large buffers.
const Limit = 256 << 20

// A Budget counts what is taken of Limit.
type Budget struct{ used atomic.Int64 }

// Used returns how many bytes are taken.
func (b *Budget) Used() int64 { return b.used.Load() }

// A Share limits what one client may take of the budget. It may take n more bytes if
//
//	share * (what it has + n) <= Limit - what all clients have
//
// So a single client can take 1/(share+1) of Limit, and every further client gets less, but
// never nothing.
type Share int64

const (
	ForStreams  Share = 1 // to accept another HTTP/2 request: up to 1/2 for a single client
	ForProgress Share = 2 // to send it to the origin: up to 1/3
	ForBuffers  Share = 4 // for large windows and buffers, without which a request is slower: up to 1/5
)

// Costs of an HTTP/2 request in bytes, without its head. The first request on a connection is part of what the
// connection costs.
const (
	StreamCost   = 32 << 10 // goroutine, request and response buffer
	ProgressCost = 48 << 10 // goroutine of Transport, small buffer, small window
)

// A Client counts what one client has of the budget, which must be set. A nil Client is unlimited.
type Client struct {
	Budget *Budget

	mu      sync.Mutex
	used    int64
	waiting []chan struct{} // for ProgressCost, in order of arrival; closed when it has been taken
}

// Take takes n bytes. It returns false if that would exceed the share.
func (m *Client) Take(n int64, s Share) bool {
	if m == nil || n == 0 {
		return true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.takeLocked(n, s)
}

// takeLocked is Take for callers that hold mu.
func (m *Client) takeLocked(n int64, s Share) bool {
	all := m.Budget.used.Add(n) - n // added first, so that clients cannot exceed the limit at the same time
	if int64(s)*(m.used+n) > Limit-all {
		m.Budget.used.Add(-n)
		return false
	}
	m.used += n
	return true
}

// Release returns n bytes to the budget.
func (m *Client) Release(n int64) {
	if m == nil || n == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used -= n
	m.Budget.used.Add(-n)
	m.wakeLocked()
}

// wakeLocked lets waiting requests go on, the longest waiting first, as far as there is room. The caller holds mu.
func (m *Client) wakeLocked() {
	for len(m.waiting) > 0 && m.takeLocked(ProgressCost, ForProgress) {
		close(m.waiting[0])
		m.waiting = m.waiting[1:]
	}
}

// ErrLimit is the error of a request for which there is no memory. Clients read its text.
var ErrLimit = errors.New("too many requests are in progress")

// AwaitProgress takes ProgressCost as soon as there is room. It returns an error when ctx ends, or after limit.
func (m *Client) AwaitProgress(ctx context.Context, limit time.Duration) error {
	m.mu.Lock()
	if len(m.waiting) == 0 && m.takeLocked(ProgressCost, ForProgress) {
		m.mu.Unlock()
		return nil
	}
	ready := make(chan struct{})
	m.waiting = append(m.waiting, ready)
	m.mu.Unlock()

	ctx, cancel := context.WithTimeoutCause(ctx, limit, ErrLimit)
	defer cancel()
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
			m.mu.Lock()
			defer m.mu.Unlock()
			if i := slices.Index(m.waiting, ready); i >= 0 {
				m.waiting = slices.Delete(m.waiting, i, i+1)
				return context.Cause(ctx)
			}
			return nil // the memory has just been taken
		}
	}
}

// A Reservation is what one request has of its client's memory.
type Reservation struct {
	Client *Client

	mu    sync.Mutex
	taken int64
	over  bool
}

// Take takes n bytes until Release. It returns false if there is no memory for them. A nil Reservation is unlimited.
func (r *Reservation) Take(n int64, s Share) bool {
	if r == nil {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over || !r.Client.Take(n, s) {
		return false
	}
	r.taken += n
	return true
}

// Release returns everything to the budget. Nothing can be taken after that.
func (r *Reservation) Release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Client.Release(r.taken)
	r.taken, r.over = 0, true
}

// Costs of a header in bytes: of each field beside its text, and what is free for a message whose other costs
// are not counted.
const (
	FieldCost  = 256
	FreeHeader = 32 << 10
)

// HeaderCost returns about how many bytes of memory a header takes.
func HeaderCost(h http.Header) (n int64) {
	for name, values := range h {
		n += int64(len(name))
		for _, v := range values {
			n += int64(len(v)) + FieldCost
		}
	}
	return n
}

// TakeHeader takes what a header costs beyond FreeHeader.
func (r *Reservation) TakeHeader(h http.Header) bool {
	cost := HeaderCost(h)
	return cost <= FreeHeader || r.Take(cost-FreeHeader, ForProgress)
}

type contextKey struct{}

// NewContext returns a context for work that takes its memory from r.
func NewContext(ctx context.Context, r *Reservation) context.Context {
	return context.WithValue(ctx, contextKey{}, r)
}

// FromContext returns the reservation in ctx. If there is none it returns nil, which is unlimited.
func FromContext(ctx context.Context) *Reservation {
	r, _ := ctx.Value(contextKey{}).(*Reservation)
	return r
}
