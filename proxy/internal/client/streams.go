package client

import (
	"net/http"
	"time"

	"robotsgate/proxy/internal/memory"
)

// flushEvery says which of a connection's HTTP/2 requests are flushed even if no other is in progress.
const flushEvery = 4

// FlushStream flushes what net/http has buffered of a small response. If the client does not read,
// it waits for that. Without a flush net/http waits when the handler has returned, with a
// goroutine and a buffer that are not counted.
//
// A flush costs one more frame, so of the requests without another in progress only one in
// flushEvery is flushed. That is enough: if the client does not read, that flush waits, so its
// request stays in progress, and all further requests are flushed.
func (c *Conn) FlushStream(w http.ResponseWriter) {
	if n := c.served.Add(1); n%flushEvery == 0 || c.streams.Load() > 1 {
		_ = http.NewResponseController(w).Flush() // within the deadline that the handler has set
	}
}

// AdmitStream waits until there is memory for an HTTP/2 request, and returns what must be
// called when the request has been served. A client without memory gets an error at once if
// too many of its requests wait already, otherwise after maxWait.
func (c *Conn) AdmitStream(r *http.Request, maxWait time.Duration) (end func(), err error) {
	if c.streams.Add(1) == 1 {
		return func() { c.streams.Add(-1) }, nil
	}
	cost := memory.StreamCost + memory.HeaderCost(r.Header)
	if !c.Memory.Take(cost, memory.ForStreams) {
		c.streams.Add(-1)
		return nil, memory.ErrLimit
	}
	if err := c.Memory.AwaitProgress(r.Context(), maxWait); err != nil {
		c.Memory.Release(cost)
		c.streams.Add(-1)
		return nil, err
	}
	return func() {
		c.Memory.Release(cost + memory.ProgressCost)
		c.streams.Add(-1)
	}, nil
}
