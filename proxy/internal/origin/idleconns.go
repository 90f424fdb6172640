package origin

import (
	"cmp"
	"container/list"
	"crypto/tls"
	"net"
	"slices"
	"sync"
	"time"

	"robotsgate/proxy/internal/netconn"
)

// Bounds on connections that are kept, by the http1Client and as many by Transport.
const (
	maxIdle       = 4096
	maxIdleOrigin = 256
)

// checkInterval is how often those that are not used are looked at.
const checkInterval = 5 * time.Second

// idleConns are connections to origins over HTTP/1 that may be used again.
type idleConns struct {
	idle time.Duration // that a connection is kept unused
	max  int           // connections kept in all; 0: maxIdle

	mu    sync.Mutex
	kept  map[originKey][]*http1Conn // of each origin the last used is last
	order list.List                  // all of them, the longest unused first
	timer *time.Timer                // until the first of order is too old, or sooner; nil: there is none
	over  bool                       // nothing is kept any more

	looked time.Time // when those that are dead were looked for
}

// An originKey names an origin.
type originKey struct {
	secure bool
	host   string // and port, as in the URL
}

// take returns the connection to an origin that was used last, nil if none is kept.
func (k *idleConns) take(key originKey) *http1Conn {
	for {
		c := k.pop(key)
		if c == nil || c.usable() {
			return c
		}
		closeAtOnce(c.conn)
	}
}

func (k *idleConns) pop(key originKey) *http1Conn {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range slices.Backward(k.kept[key]) {
		if !c.inspected {
			k.remove(c)
			return c
		}
	}
	return nil
}

// keep keeps a connection for the next request.
func (k *idleConns) keep(c *http1Conn) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.over || len(k.kept[c.key]) >= maxIdleOrigin {
		closeAtOnce(c.conn)
		return
	}
	if k.kept == nil {
		k.kept = map[originKey][]*http1Conn{}
	}
	c.since = time.Now()
	k.kept[c.key] = append(k.kept[c.key], c)
	c.place = k.order.PushBack(c)
	if k.order.Len() > cmp.Or(k.max, maxIdle) {
		k.close(k.order.Front().Value.(*http1Conn))
	}
	if k.timer == nil {
		k.timer = time.AfterFunc(min(k.idle, checkInterval), k.sweep)
	}
}

// remove forgets a connection. The caller holds the lock.
func (k *idleConns) remove(c *http1Conn) {
	k.order.Remove(c.place)
	c.place = nil
	all := k.kept[c.key]
	for i := len(all) - 1; i >= 0; i-- {
		if all[i] == c {
			copy(all[i:], all[i+1:])
			all[len(all)-1] = nil
			all = all[:len(all)-1]
			break
		}
	}
	if len(all) == 0 {
		delete(k.kept, c.key)
		return
	}
	k.kept[c.key] = all
}

func (k *idleConns) close(c *http1Conn) {
	k.remove(c)
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
func (k *idleConns) sweep() {
	for _, c := range k.due() {
		k.lookAt(c)
	}
	for _, c := range k.tooOld() {
		closeAtOnce(c.conn)
	}
}

// due returns those that are to be looked at.
func (k *idleConns) due() (all []*http1Conn) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if time.Since(k.looked) < checkInterval {
		return nil
	}
	k.looked = time.Now()
	for place := k.order.Front(); place != nil; place = place.Next() {
		c := place.Value.(*http1Conn)
		if time.Since(c.since) < checkInterval {
			break
		}
		all = append(all, c)
	}
	return all
}

// lookAt closes a connection that its origin has closed, or floods: it would hold a
// descriptor, and memory of the kernel's.
func (k *idleConns) lookAt(c *http1Conn) {
	if !k.setApart(c) {
		return
	}
	good := c.usable()
	k.mu.Lock()
	defer k.mu.Unlock()
	c.inspected = false
	if c.place != nil && !good {
		k.close(c)
	}
}

// setApart sets a connection apart, so that no request takes it, unless it is not kept any more.
func (k *idleConns) setApart(c *http1Conn) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	c.inspected = c.place != nil
	return c.inspected
}

// tooOld removes those that have been unused for too long, and sets the timer for the next.
func (k *idleConns) tooOld() (all []*http1Conn) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.timer = nil
	for first := k.order.Front(); first != nil; first = k.order.Front() {
		c := first.Value.(*http1Conn)
		if left := k.idle - time.Since(c.since); left > 0 {
			k.timer = time.AfterFunc(min(left, checkInterval), k.sweep)
			break
		}
		k.remove(c)
		all = append(all, c)
	}
	return all
}

// closeOldest closes up to n connections, those first that have been unused for longest, and
// returns how many.
func (k *idleConns) closeOldest(n int) (closed int) {
	for ; closed < n; closed++ {
		c := k.popOldest()
		if c == nil {
			break
		}
		closeAtOnce(c.conn)
	}
	return closed
}

func (k *idleConns) popOldest() *http1Conn {
	k.mu.Lock()
	defer k.mu.Unlock()
	oldest := k.order.Front()
	if oldest == nil {
		return nil
	}
	c := oldest.Value.(*http1Conn)
	k.remove(c)
	return c
}

// end closes all that are kept, and those in use after their answer.
func (k *idleConns) end() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.over = true
	for first := k.order.Front(); first != nil; first = k.order.Front() {
		k.close(first.Value.(*http1Conn))
	}
	if k.timer != nil {
		k.timer.Stop()
		k.timer = nil
	}
}

// usable reports whether a connection can take another request: its origin has neither closed a kept connection nor sent
// anything, which would be taken for the next answer.
func (c *http1Conn) usable() bool {
	return c.socket.Silent() && !c.holds()
}

// holds reports whether TLS has something behind the last answer.
func (c *http1Conn) holds() bool {
	if !c.key.secure {
		return false
	}
	under, ok := c.conn.(*tls.Conn).NetConn().(*netconn.Conn)
	if !ok {
		return true // nobody knows
	}
	under.SetNonBlocking(&netconn.EmptySocket)
	_, err := c.reader.Peek(1)
	under.SetNonBlocking(nil)
	return err != netconn.ErrWouldBlock
}
