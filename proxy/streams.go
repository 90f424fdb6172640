package proxy

import (
	"net/http"
	"time"

	"robotsgate/proxy/internal/memory"
)

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
		_ = http.NewResponseController(w).Flush() // bounded by the deadline that release has set
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
	cost := memory.StreamCost + memory.HeaderCost(r.Header)
	if !c.memory.Take(cost, memory.ForStreams) {
		c.streams.Add(-1)
		return nil, memory.ErrLimit
	}
	if err := c.memory.AwaitProgress(r.Context(), patience); err != nil {
		c.memory.Release(cost)
		c.streams.Add(-1)
		return nil, err
	}
	return func() {
		c.memory.Release(cost + memory.ProgressCost)
		c.streams.Add(-1)
	}, nil
}

// withStreamLimits returns a handler that admits HTTP/2 requests as far as there is memory.
func (p *Proxy) withStreamLimits(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			serve(w, r)
			return
		}
		c := clientOf(r)
		end, err := c.admitStream(r, p.Limits.IdleTimeout)
		if err != nil {
			p.crowd.noMemory(c, err, p.Log)
			panic(http.ErrAbortHandler) // an answer would have to wait for the client, too
		}
		defer end()
		serve(w, r)
		c.flushStream(w)
	}
}
