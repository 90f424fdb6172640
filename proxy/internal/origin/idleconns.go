package origin

import (
	"cmp"
	"container/list"
	"math"
	"slices"
	"sync"
	"time"
)

// Bounds on idle connections, of the http1Client and, as many again, of Transport.
const (
	maxIdle       = 4096
	maxIdleOrigin = 256
)

// checkInterval is how often idle connections are checked.
const checkInterval = 5 * time.Second

// idleConns are connections to origins over HTTP/1 that may be used again.
type idleConns struct {
	timeout time.Duration // after which an idle connection is closed
	max     int           // idle connections; 0: maxIdle

	mu       sync.Mutex
	byOrigin map[originKey][]*http1Conn // the last used is last
	order    list.List                  // of *http1Conn, the longest idle first
	timer    *time.Timer                // nil: no connection is idle
	closed   bool                       // put closes every connection
}

// get returns the connection to an origin that was used last, and nil if there is none.
func (p *idleConns) get(key originKey) *http1Conn {
	for {
		c := p.pop(key)
		if c == nil || c.usable() {
			return c
		}
		closeAtOnce(c.conn)
	}
}

func (p *idleConns) pop(key originKey) *http1Conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	conns := p.byOrigin[key]
	if len(conns) == 0 {
		return nil
	}
	c := conns[len(conns)-1]
	p.removeLocked(c)
	return c
}

// put keeps a connection for the next request, or closes it if there are too many.
func (p *idleConns) put(c *http1Conn) {
	if extra := p.add(c); extra != nil {
		closeAtOnce(extra.conn)
	}
}

// add keeps a connection. If there is no room for one more it returns a connection to close: c, or
// the one that has been idle for longest.
func (p *idleConns) add(c *http1Conn) (extra *http1Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.byOrigin[c.key]) >= maxIdleOrigin {
		return c
	}
	if p.byOrigin == nil {
		p.byOrigin = map[originKey][]*http1Conn{}
	}
	c.idleSince = time.Now()
	c.place = p.order.PushBack(c)
	p.byOrigin[c.key] = append(p.byOrigin[c.key], c)
	if p.timer == nil {
		p.timer = time.AfterFunc(p.interval(), p.sweep)
	}
	if p.order.Len() > cmp.Or(p.max, maxIdle) {
		extra = p.order.Front().Value.(*http1Conn)
		p.removeLocked(extra)
	}
	return extra
}

// removeLocked removes an idle connection, for callers that hold mu.
func (p *idleConns) removeLocked(c *http1Conn) {
	p.order.Remove(c.place)
	c.place = nil
	conns := p.byOrigin[c.key]
	if len(conns) == 1 {
		delete(p.byOrigin, c.key)
		return
	}
	i := slices.Index(conns, c)
	p.byOrigin[c.key] = slices.Delete(conns, i, i+1)
}

func (p *idleConns) interval() time.Duration { return min(p.timeout, checkInterval) }

// sweep closes connections that have been idle for too long, or that their origin has closed or sends to: they
// hold a descriptor and memory of the kernel. Each is checked under the lock, but the lock is not held from one to
// the next: there may be thousands.
func (p *idleConns) sweep() {
	for _, c := range p.unchecked() {
		if p.removeUnusable(c) {
			closeAtOnce(c.conn)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.timer == nil: // closed
	case p.order.Len() == 0:
		p.timer = nil
	default:
		p.timer.Reset(p.interval())
	}
}

// unchecked returns the connections that have been idle since the last sweep.
func (p *idleConns) unchecked() (conns []*http1Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for e := p.order.Front(); e != nil; e = e.Next() {
		c := e.Value.(*http1Conn)
		if time.Since(c.idleSince) < p.interval() {
			break
		}
		conns = append(conns, c)
	}
	return conns
}

// removeUnusable removes a connection if it cannot be used again, and reports whether it has.
func (p *idleConns) removeUnusable(c *http1Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.place == nil || time.Since(c.idleSince) < p.timeout && c.usable() {
		return false
	}
	p.removeLocked(c)
	return true
}

// closeOldest closes up to n connections, the longest idle first, and returns how many.
func (p *idleConns) closeOldest(n int) (closed int) {
	for ; closed < n; closed++ {
		c := p.popOldest()
		if c == nil {
			break
		}
		closeAtOnce(c.conn)
	}
	return closed
}

func (p *idleConns) popOldest() *http1Conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	oldest := p.order.Front()
	if oldest == nil {
		return nil
	}
	c := oldest.Value.(*http1Conn)
	p.removeLocked(c)
	return c
}

// close closes all idle connections, and makes put close those in use.
func (p *idleConns) close() {
	p.stop()
	p.closeOldest(math.MaxInt)
}

func (p *idleConns) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
}
