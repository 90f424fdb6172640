package client

import (
	"net/http"
	"time"

	"robotsgate/proxy/internal/memory"
)

// flushEvery says which of a connection's HTTP/2 requests are flushed even if no other is in progress.
const flushEvery = 4

// FlushStream waits until the client has read what net/http has buffered of a small response.
// Otherwise net/http waits for that when the handler has returned, with a goroutine and a
// buffer that are not counted. It costs one more frame, so most requests without another in
// progress are left out: the first one that a client does not read makes two with the next.
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
