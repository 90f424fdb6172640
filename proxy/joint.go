package proxy

import (
	"net"
	"sync"
)

// A joint puts two writes together. Net/http has a buffer of 4 KiB for an answer: where that does
// not hold it, it writes what it does, and then the rest; to the kernel, and to the client who
// is woken twice, that is nearly twice the work.
type joint struct {
	held *[]byte // nil: nothing is to be held
	err  error   // of a write that failed behind its caller's back: there can be none any more
}

// maxHeld is what a joint may hold, in bytes: net/http's buffer, in TLS too.
const maxHeld = 4<<10 + 256

var joints = sync.Pool{New: func() any { return new(make([]byte, 0, maxHeld)) }}

// join holds what is written next, if it is a small piece, until the next one or part.
func (c *easyConn) join() { c.joint.held = joints.Get().(*[]byte) }

// part writes what is held. If it can't, the connection is closed: those that wrote it
// believe it was sent.
func (c *easyConn) part() error {
	held := c.joint.held
	c.joint.held = nil
	if len(*held) > 0 && c.joint.err == nil {
		_, c.joint.err = c.writeOne(*held)
	}
	*held = (*held)[:0]
	joints.Put(held)
	if c.joint.err != nil {
		c.Conn.Close()
	}
	return c.joint.err
}

// Write writes p, behind what is held.
func (c *easyConn) Write(p []byte) (int, error) {
	switch held := c.joint.held; {
	case c.joint.err != nil:
		return 0, c.joint.err
	case held == nil:
		return c.writeOne(p)
	case len(*held) == 0 && len(p) <= maxHeld:
		*held = append(*held, p...)
		return len(p), nil
	case len(*held) == 0:
		return c.writeOne(p)
	default:
		before := len(*held)
		n, err := c.writeAll(net.Buffers{*held, p})
		*held = (*held)[:0]
		c.joint.err = err
		return max(0, n-before), err
	}
}
