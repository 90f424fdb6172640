package proxy

import (
	"container/list"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"slices"
	"sync"
	"time"
)

// Bounds on connections that are kept, by the carrier and as many by Transport.
const (
	maxKept       = 4096
	maxKeptOrigin = 256
)

// lookEvery is how often those that are not used are looked at.
const lookEvery = 5 * time.Second

// KeptConns are connections to origins over HTTP/1 that may be used again.
//
// They are for requests without a body, which are nearly all. Transport hands such a
// request from the goroutine that asks to one that writes, and its answer from one that
// reads: that is a fifth of what a request costs, and none of it is needed where all that
// is to be written is written before anything is read. Requests with a body, HTTP/2, and
// what goes through a parent or is limited by host are Transport's.
type keptConns struct {
	idle time.Duration // that a connection is kept unused

	mu    sync.Mutex
	kept  map[originKey][]*originConn // of each origin the last used is last
	order list.List                   // all of them, the longest unused first
	timer *time.Timer                 // until the first of order is too old, or sooner; nil: there is none
	over  bool                        // nothing is kept any more

	looked time.Time // when those that are dead were looked for
}

// An originKey names an origin.
type originKey struct {
	secure bool
	host   string // and port, as in the URL
}

// take returns the connection to an origin that was used last, nil if none is kept.
func (o *keptConns) take(key originKey) *originConn {
	for {
		c := o.pop(key)
		if c == nil || c.quiet() {
			return c
		}
		closeAtOnce(c.conn)
	}
}

func (o *keptConns) pop(key originKey) *originConn {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range slices.Backward(o.kept[key]) {
		if !c.inspected {
			o.remove(c)
			return c
		}
	}
	return nil
}

// keep keeps a connection for the next request.
func (o *keptConns) keep(c *originConn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over || len(o.kept[c.key]) >= maxKeptOrigin {
		closeAtOnce(c.conn)
		return
	}
	if o.kept == nil {
		o.kept = map[originKey][]*originConn{}
	}
	c.since = time.Now()
	o.kept[c.key] = append(o.kept[c.key], c)
	c.place = o.order.PushBack(c)
	if o.order.Len() > maxKept {
		o.close(o.order.Front().Value.(*originConn))
	}
	if o.timer == nil {
		o.timer = time.AfterFunc(min(o.idle, lookEvery), o.sweep)
	}
}

// remove forgets a connection. The caller holds the lock.
func (o *keptConns) remove(c *originConn) {
	o.order.Remove(c.place)
	c.place = nil
	all := o.kept[c.key]
	for i := len(all) - 1; i >= 0; i-- {
		if all[i] == c {
			copy(all[i:], all[i+1:])
			all[len(all)-1] = nil
			all = all[:len(all)-1]
			break
		}
	}
	if len(all) == 0 {
		delete(o.kept, c.key)
		return
	}
	o.kept[c.key] = all
}

func (o *keptConns) close(c *originConn) {
	o.remove(c)
	closeAtOnce(c.conn)
}

// closeAtOnce closes a connection without TLS's goodbye: that waits for an origin that does not
// read, and with it would all that want a connection.
func closeAtOnce(conn net.Conn) {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	conn.Close()
}

// sweep closes what is dead, and what has been unused for too long. Neither is done under
// the lock, which every request takes: there may be thousands.
func (o *keptConns) sweep() {
	for _, c := range o.due() {
		o.lookAt(c)
	}
	for _, c := range o.tooOld() {
		closeAtOnce(c.conn)
	}
}

// due returns those that are to be looked at.
func (o *keptConns) due() (all []*originConn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if time.Since(o.looked) < lookEvery {
		return nil
	}
	o.looked = time.Now()
	for place := o.order.Front(); place != nil; place = place.Next() {
		c := place.Value.(*originConn)
		if time.Since(c.since) < lookEvery {
			break
		}
		all = append(all, c)
	}
	return all
}

// lookAt closes a connection that its origin has closed, or floods: it would hold a
// descriptor, and memory of the kernel's.
func (o *keptConns) lookAt(c *originConn) {
	if !o.setApart(c) {
		return
	}
	quiet := c.quiet()
	o.mu.Lock()
	defer o.mu.Unlock()
	c.inspected = false
	if c.place != nil && !quiet {
		o.close(c)
	}
}

// setApart sets a connection apart, so that no request takes it, unless it is not kept any more.
func (o *keptConns) setApart(c *originConn) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	c.inspected = c.place != nil
	return c.inspected
}

// tooOld removes those that have been unused for too long, and sets the timer for the next.
func (o *keptConns) tooOld() (all []*originConn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.timer = nil
	for first := o.order.Front(); first != nil; first = o.order.Front() {
		c := first.Value.(*originConn)
		if left := o.idle - time.Since(c.since); left > 0 {
			o.timer = time.AfterFunc(min(left, lookEvery), o.sweep)
			break
		}
		o.remove(c)
		all = append(all, c)
	}
	return all
}

// closeIdle closes all that are kept, and those in use after their answer.
func (o *keptConns) closeIdle() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.over = true
	for first := o.order.Front(); first != nil; first = o.order.Front() {
		o.close(first.Value.(*originConn))
	}
	if o.timer != nil {
		o.timer.Stop()
		o.timer = nil
	}
}

// quiet reports whether an origin has neither closed a kept connection nor sent
// anything, which would be taken for the next answer.
func (c *originConn) quiet() bool {
	return c.socket.silent() && !c.holds()
}

// holds reports whether TLS has decrypted something behind the last answer. A read that
// must not wait shows it; the next request sets another deadline.
func (c *originConn) holds() bool {
	if !c.key.secure {
		return false
	}
	if err := c.conn.SetReadDeadline(time.Unix(1, 0)); err != nil {
		return true
	}
	_, err := c.reader.Peek(1)
	return !errors.Is(err, os.ErrDeadlineExceeded)
}
