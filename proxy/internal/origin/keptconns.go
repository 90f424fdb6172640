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

// Bounds on connections that are kept, by the carrier and as many by Transport.
const (
	maxKept       = 4096
	maxKeptOrigin = 256
)

// lookEvery is how often those that are not used are looked at.
const lookEvery = 5 * time.Second

// KeptConns are connections to origins over HTTP/1 that may be used again.
type keptConns struct {
	idle time.Duration // that a connection is kept unused
	max  int           // connections kept in all; 0: maxKept

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
func (k *keptConns) take(key originKey) *originConn {
	for {
		c := k.pop(key)
		if c == nil || c.mayServe() {
			return c
		}
		closeAtOnce(c.conn)
	}
}

func (k *keptConns) pop(key originKey) *originConn {
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
func (k *keptConns) keep(c *originConn) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.over || len(k.kept[c.key]) >= maxKeptOrigin {
		closeAtOnce(c.conn)
		return
	}
	if k.kept == nil {
		k.kept = map[originKey][]*originConn{}
	}
	c.since = time.Now()
	k.kept[c.key] = append(k.kept[c.key], c)
	c.place = k.order.PushBack(c)
	if k.order.Len() > cmp.Or(k.max, maxKept) {
		k.close(k.order.Front().Value.(*originConn))
	}
	if k.timer == nil {
		k.timer = time.AfterFunc(min(k.idle, lookEvery), k.sweep)
	}
}

// remove forgets a connection. The caller holds the lock.
func (k *keptConns) remove(c *originConn) {
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

func (k *keptConns) close(c *originConn) {
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
func (k *keptConns) sweep() {
	for _, c := range k.due() {
		k.lookAt(c)
	}
	for _, c := range k.tooOld() {
		closeAtOnce(c.conn)
	}
}

// due returns those that are to be looked at.
func (k *keptConns) due() (all []*originConn) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if time.Since(k.looked) < lookEvery {
		return nil
	}
	k.looked = time.Now()
	for place := k.order.Front(); place != nil; place = place.Next() {
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
func (k *keptConns) lookAt(c *originConn) {
	if !k.setApart(c) {
		return
	}
	good := c.mayServe()
	k.mu.Lock()
	defer k.mu.Unlock()
	c.inspected = false
	if c.place != nil && !good {
		k.close(c)
	}
}

// setApart sets a connection apart, so that no request takes it, unless it is not kept any more.
func (k *keptConns) setApart(c *originConn) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	c.inspected = c.place != nil
	return c.inspected
}

// tooOld removes those that have been unused for too long, and sets the timer for the next.
func (k *keptConns) tooOld() (all []*originConn) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.timer = nil
	for first := k.order.Front(); first != nil; first = k.order.Front() {
		c := first.Value.(*originConn)
		if left := k.idle - time.Since(c.since); left > 0 {
			k.timer = time.AfterFunc(min(left, lookEvery), k.sweep)
			break
		}
		k.remove(c)
		all = append(all, c)
	}
	return all
}

// closeOldest closes up to n connections, those first that have been unused for longest, and
// returns how many.
func (k *keptConns) closeOldest(n int) (closed int) {
	for ; closed < n; closed++ {
		c := k.popOldest()
		if c == nil {
			break
		}
		closeAtOnce(c.conn)
	}
	return closed
}

func (k *keptConns) popOldest() *originConn {
	k.mu.Lock()
	defer k.mu.Unlock()
	oldest := k.order.Front()
	if oldest == nil {
		return nil
	}
	c := oldest.Value.(*originConn)
	k.remove(c)
	return c
}

// end closes all that are kept, and those in use after their answer.
func (k *keptConns) end() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.over = true
	for first := k.order.Front(); first != nil; first = k.order.Front() {
		k.close(first.Value.(*originConn))
	}
	if k.timer != nil {
		k.timer.Stop()
		k.timer = nil
	}
}

// mayServe reports whether a connection can take another request: its origin has neither closed a kept connection nor sent
// anything, which would be taken for the next answer.
func (c *originConn) mayServe() bool {
	return c.socket.Silent() && !c.holds()
}

// holds reports whether TLS has something behind the last answer.
func (c *originConn) holds() bool {
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
