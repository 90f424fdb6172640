package origin

import (
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"robotsgate/internal/loglimit"

	"golang.org/x/sync/singleflight"
)

// Descriptors divides the file descriptors that the process may open: half are for
// connections of clients, an eighth is left for files, DNS lookups and the admin listener,
// and the rest is for connections to origins. The zero value sets no bound.
type Descriptors struct {
	Limit int          // RLIMIT_NOFILE; 0: no limit is known
	Log   *slog.Logger // for shortages; nil: none is logged

	closing  singleflight.Group // of idle connections
	failures atomic.Int64       // of all time
	warned   loglimit.Minute    // of them

	mu         sync.Mutex
	inUse      int               // by connections to origins, and by attempts to open one
	conns      map[ends]struct{} // open connections to origins
	transports []*Transport      // with idle connections that can be closed
}

// Clients returns how many connections of clients there may be, out of as many as configured.
func (d *Descriptors) Clients(configured int) int {
	if d.Limit == 0 {
		return configured
	}
	return min(configured, (d.Limit+1)/2) // Go leaves one of an odd limit's hard limit unused
}

// Other returns how many descriptors are left for one of the other uses, out of as many as it wants.
func (d *Descriptors) Other(wanted int) int {
	if d.Limit == 0 {
		return wanted
	}
	return min(wanted, max(1, d.reserve()/4))
}

// reserve is left for what is neither a client's nor an origin's connection.
func (d *Descriptors) reserve() int { return min(max(d.Limit/8, 24), 2048) }

// origins returns how many descriptors connections to origins may take in all.
func (d *Descriptors) origins() int { return max(perDial, d.Limit/2-d.reserve()) }

// idle returns how many idle connections to origins one pool may keep. There are two pools, and a
// small third: together they may take about half of what is for origins.
func (d *Descriptors) idle() int {
	if d.Limit == 0 {
		return maxIdle
	}
	return min(maxIdle, max(1, d.origins()/4))
}

// InUse returns how many descriptors connections to origins, and attempts to open one, take.
func (d *Descriptors) InUse() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.inUse
}

// perDial is how many descriptors an attempt to connect takes: net.Dialer looks up
// IPv4 and IPv6 addresses at the same time, and dials both.
const perDial = 2

// dial opens a connection to an origin within the bound, and counts it until it is closed.
// When descriptors have run out it closes idle connections and tries once more.
// It fails with snapshot.ErrExhausted if the error says nothing about the origin.
func (d *Descriptors) dial(open func() (net.Conn, error)) (net.Conn, error) {
	if !d.take(perDial) {
		return nil, d.fail(errAllInUse)
	}
	conn, err := open()
	if exhausted(err) {
		d.closeIdle()
		conn, err = open()
	}
	if err != nil {
		d.release(perDial)
		return nil, d.mark(err)
	}
	tcp, ok := conn.(*net.TCPConn)
	if !ok { // a lookup opens no connection
		d.release(perDial)
		return conn, nil
	}
	c := &countedConn{TCPConn: tcp, of: d, ends: endsOf(tcp.LocalAddr(), tcp.RemoteAddr())}
	d.release(perDial - 1)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.conns == nil {
		d.conns = map[ends]struct{}{}
	}
	d.conns[c.ends] = struct{}{}
	return c, nil
}

// Dialled reports whether a connection to an origin has these addresses.
func (d *Descriptors) Dialled(local, remote net.Addr) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, ok := d.conns[endsOf(local, remote)]
	return ok
}

// ends are the addresses of a connection, of which a machine has no second one with both.
type ends struct{ local, remote netip.AddrPort }

func endsOf(local, remote net.Addr) ends {
	address := func(a net.Addr) netip.AddrPort {
		p, _ := netip.ParseAddrPort(a.String())
		return netip.AddrPortFrom(p.Addr().Unmap(), p.Port())
	}
	return ends{address(local), address(remote)}
}

// lookup is dial for a DNS lookup.
func (d *Descriptors) lookup(do func() error) error {
	_, err := d.dial(func() (net.Conn, error) { return nil, do() })
	return err
}

// take reserves n descriptors, and closes idle connections for them if necessary. It reports
// whether there were enough.
func (d *Descriptors) take(n int) bool {
	const attempts = 4 // another goroutine may take what this one has released
	for range attempts {
		if d.tryTake(n) {
			return true
		}
		d.closeIdle()
	}
	return d.tryTake(n)
}

func (d *Descriptors) tryTake(n int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.Limit > 0 && d.inUse+n > d.origins() {
		return false
	}
	d.inUse += n
	return true
}

func (d *Descriptors) release(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.inUse -= n
}

// add lets idle connections of t be closed, until remove.
func (d *Descriptors) add(t *Transport) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.transports = append(d.transports, t)
}

func (d *Descriptors) remove(t *Transport) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.transports = slices.DeleteFunc(slices.Clone(d.transports), func(other *Transport) bool { return other == t })
}

// closeWait is how long a dial waits for idle connections to be closed. TLS takes 5 s to close a
// connection if the origin does not read.
const closeWait = 100 * time.Millisecond

// closeIdle closes all idle connections, or waits for another goroutine that does.
func (d *Descriptors) closeIdle() {
	done := d.closing.DoChan("", func() (any, error) {
		d.mu.Lock()
		transports := d.transports // remove makes another slice
		d.mu.Unlock()
		for _, t := range transports {
			t.CloseIdleConnections()
		}
		return nil, nil
	})
	select {
	case <-done:
	case <-time.After(closeWait):
	}
}

// A countedConn is counted in its Descriptors until it is closed.
type countedConn struct {
	*net.TCPConn
	of   *Descriptors
	ends ends
	once sync.Once
}

func (c *countedConn) Close() error {
	err := c.TCPConn.Close()
	c.once.Do(func() {
		c.of.release(1)
		c.of.mu.Lock()
		defer c.of.mu.Unlock()
		delete(c.of.conns, c.ends)
	})
	return err
}
