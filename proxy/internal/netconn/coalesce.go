package netconn

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// A joint puts two writes together, where net/http makes two of the beginning of an answer and
// the rest: in HTTP/1 because its buffer is 4 KiB, in HTTP/2 because it sends the head before it
// looks what is behind it. To the kernel, and to the client who is woken twice, that is
// nearly twice the work.
type joint struct {
	next  atomic.Bool // the next piece, if it is small, waits for the one behind it
	http2 bool        // there are others who write

	mu     sync.Mutex
	held   *[]byte       // nil: nothing is
	scope  bool          // until part; else until the next Write, or the timer
	silent time.Duration // for so long the timer's write may go EmptySocket
	timer  *time.Timer   // nil: never needed yet
	err    error         // of a write that failed behind its caller's back: there can be none any more
}

const (
	// maxHeld is what a joint may hold, in bytes: net/http's buffer, in TLS too.
	maxHeld = 4<<10 + 256
	// heldFor is how long it does where the other piece does not come: in HTTP/2 a client need not
	// let it, and sometimes both have come in one.
	heldFor = 10 * time.Millisecond
)

var joints = sync.Pool{New: func() any { return new(make([]byte, 0, maxHeld)) }}

// join holds what is written next, if that is small, until there is more, or part is called.
func (c *Conn) Hold() {
	c.joint.mu.Lock()
	defer c.joint.mu.Unlock()
	c.joint.scope = true
	c.joint.next.Store(true)
}

// part writes what is held. If it can't, the connection is closed: those that wrote it
// believe that it was sent.
func (c *Conn) Release() error {
	j := &c.joint
	j.mu.Lock()
	defer j.mu.Unlock()
	j.scope = false
	j.next.Store(false)
	return c.release()
}

// HoldNext holds what is written next over HTTP/2, if that is small, for a moment. Silent is how
// long the client may take nothing of it.
func (c *Conn) HoldNext(silent time.Duration) {
	if !c.joint.http2 {
		return // a request in HTTP/1 may call itself HTTP/2 (RFC 9113, 3.4)
	}
	if !c.joint.mu.TryLock() {
		return // something is written, which may take long
	}
	defer c.joint.mu.Unlock()
	c.joint.silent = silent
	c.joint.next.Store(true)
}

// release writes what is held. The caller has the lock.
func (c *Conn) release() error {
	j := &c.joint
	if j.held != nil && j.err == nil {
		_, j.err = c.writeOne(*j.held)
	}
	j.free()
	if j.err != nil {
		c.Conn.Close()
	}
	return j.err
}

func (j *joint) free() {
	if j.held != nil {
		*j.held = (*j.held)[:0]
		joints.Put(j.held)
		j.held = nil
	}
}

// Write writes p, behind what is held.
func (c *Conn) Write(p []byte) (int, error) {
	j := &c.joint
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.err != nil:
		return 0, j.err
	case j.held != nil:
		if !j.scope {
			j.timer.Stop()
		}
		before := len(*j.held)
		var n int
		var err error
		if before+len(p) <= cap(*j.held) { // to copy it is cheaper than two pieces
			*j.held = append(*j.held, p...)
			n, err = c.writeOne(*j.held)
		} else {
			n, err = c.writeAll(net.Buffers{*j.held, p})
		}
		j.free()
		j.err = err
		return max(0, n-before), err
	case j.next.Load() && len(p) <= maxHeld:
		j.held = joints.Get().(*[]byte)
		*j.held = append(*j.held, p...)
		if !j.scope {
			j.next.Store(false)
			c.releaseLater()
		}
		return len(p), nil
	}
	j.next.Store(false)
	return c.writeOne(p)
}

// releaseLater sets the timer. The caller has the lock.
func (c *Conn) releaseLater() {
	j := &c.joint
	if j.timer != nil {
		j.timer.Reset(heldFor)
		return
	}
	j.timer = time.AfterFunc(heldFor, func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		if j.held != nil && !j.scope {
			_ = c.SetWriteDeadline(time.Now().Add(j.silent)) // net/http sets its own for each Write
			_ = c.release()                                  // which the next Write tells
		}
	})
}

// CarriesHTTP2 is called before anything of it is written.
func (c *Conn) CarriesHTTP2() { c.joint.http2 = true }

// CancelHold undoes HoldNext for a piece that is not written yet.
func (c *Conn) CancelHold() { c.joint.next.Store(false) }
