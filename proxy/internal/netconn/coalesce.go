package netconn

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// A coalescer joins two writes: net/http writes the beginning of a response and the rest apart. Over HTTP/1 its buffer
// holds 4 KiB; over HTTP/2 it sends the head before it looks whether there is a body. Two writes are twice the work for
// the kernel, and wake the client twice.
//
// [Conn.Hold] and [Conn.Release] are for HTTP/1: pages are at 0.71 of the plain forwarder's rate with them, and at
// 0.66 without, on a busy machine. [Conn.HoldNext] is for HTTP/2: 0.69 and 0.62.
//
// It relies on net/http to make the two writes one directly after the other. If net/http stops doing so, there are two
// writes again, and HoldNext delays the first one by at most holdTime, which TestHoldNext shows. If neither Hold nor
// HoldNext is called, every Write is passed on as it is.
type coalescer struct {
	armed  atomic.Bool // hold the next write, if it is small
	shared bool        // the connection carries HTTP/2, whose streams may all write

	mu      sync.Mutex
	held    *[]byte       // nil: nothing
	scoped  bool          // held until Release; otherwise until the next Write, or the timer
	timeout time.Duration // of the timer's write
	timer   *time.Timer   // nil: not used yet
	err     error         // of a write whose caller has returned; every later Write fails with it
}

const (
	// maxHeld bounds what is held, in bytes: net/http's buffer, and what TLS adds.
	maxHeld = 4<<10 + 256
	// holdTime bounds how long HoldNext holds a write behind which nothing else is written: over HTTP/2 the client's
	// window may be closed, and sometimes one write has had everything.
	holdTime = 10 * time.Millisecond
)

var heldBuffers = sync.Pool{New: func() any { return new(make([]byte, 0, maxHeld)) }}

// Hold holds the next write, if it is small, until another write or Release.
func (c *Conn) Hold() {
	c.coalescer.mu.Lock()
	defer c.coalescer.mu.Unlock()
	c.coalescer.scoped = true
	c.coalescer.armed.Store(true)
}

// Release writes what is held. If that fails it closes the connection: the caller of the held write
// has been told that it succeeded.
func (c *Conn) Release() error {
	h := &c.coalescer
	h.mu.Lock()
	defer h.mu.Unlock()
	h.scoped = false
	h.armed.Store(false)
	return c.releaseLocked()
}

// CarriesHTTP2 makes HoldNext work. It must be called before the first Write.
func (c *Conn) CarriesHTTP2() { c.coalescer.shared = true }

// HoldNext holds the next write over HTTP/2, if it is small, until another write, but for holdTime at most. timeout
// bounds the write of what was held, in which the client may not read.
func (c *Conn) HoldNext(timeout time.Duration) {
	if !c.coalescer.shared {
		return // a request over HTTP/1 may claim to be HTTP/2 (RFC 9113, section 3.4)
	}
	if !c.coalescer.mu.TryLock() {
		return // a write is in progress, and may take long
	}
	defer c.coalescer.mu.Unlock()
	c.coalescer.timeout = timeout
	c.coalescer.armed.Store(true)
}

// CancelHold undoes HoldNext, unless the next write has been held already.
func (c *Conn) CancelHold() { c.coalescer.armed.Store(false) }

// Write writes p behind what is held.
func (c *Conn) Write(p []byte) (int, error) {
	h := &c.coalescer
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.err != nil:
		return 0, h.err
	case h.held != nil:
		return c.writeBehindLocked(p)
	case h.armed.Load() && len(p) <= maxHeld:
		h.held = heldBuffers.Get().(*[]byte)
		*h.held = append(*h.held, p...)
		if !h.scoped {
			h.armed.Store(false)
			c.startTimerLocked()
		}
		return len(p), nil
	}
	h.armed.Store(false)
	return c.writeOne(p)
}

// writeBehindLocked writes what is held, and p, in one system call.
func (c *Conn) writeBehindLocked(p []byte) (n int, err error) {
	h := &c.coalescer
	if !h.scoped {
		h.timer.Stop()
	}
	before := len(*h.held)
	if before+len(p) <= cap(*h.held) { // a copy is cheaper than two buffers
		*h.held = append(*h.held, p...)
		n, err = c.writeOne(*h.held)
	} else {
		n, err = c.writeAll(net.Buffers{*h.held, p})
	}
	h.freeLocked()
	h.err = err
	return max(0, n-before), err
}

func (c *Conn) releaseLocked() error {
	h := &c.coalescer
	if h.held != nil && h.err == nil {
		_, h.err = c.writeOne(*h.held)
	}
	h.freeLocked()
	if h.err != nil {
		c.Conn.Close()
	}
	return h.err
}

func (h *coalescer) freeLocked() {
	if h.held != nil {
		*h.held = (*h.held)[:0]
		heldBuffers.Put(h.held)
		h.held = nil
	}
}

// startTimerLocked starts the timer that writes what HoldNext has held.
func (c *Conn) startTimerLocked() {
	h := &c.coalescer
	if h.timer != nil {
		h.timer.Reset(holdTime)
		return
	}
	h.timer = time.AfterFunc(holdTime, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.held != nil && !h.scoped {
			_ = c.SetWriteDeadline(time.Now().Add(h.timeout)) // net/http sets its own for each Write
			_ = c.releaseLocked()                             // the next Write returns the error
		}
	})
}
