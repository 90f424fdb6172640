package origin

import (
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"
)

// Descriptors divides the file descriptors that the process may open: half are for
// connections of clients, an eighth is left for files, DNS lookups and the admin listener,
// and the rest is for connections to origins. The zero value sets no bound.
type Descriptors struct {
	Limit int          // RLIMIT_NOFILE; 0: unknown
	Log   *slog.Logger // for warnings; nil: none

	mu      sync.Mutex
	inUse   int           // by connections to origins, and by attempts to open one
	pools   []*Transport  // whose idle connections can be closed
	swept   time.Time     // when the transports' idle connections were last closed
	sweeps  chan struct{} // closed when that is done; nil: none is under way
	failed  int64         // see Failures
	unsaid  int           // failures since the last warning
	warning time.Time     // the last one
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

// idle returns how many connections to origins one pool may keep unused. There are two pools, and a
// small third: together they may take about half of what is for origins.
func (d *Descriptors) idle() int {
	if d.Limit == 0 {
		return maxIdle
	}
	return min(maxIdle, max(1, d.origins()/4))
}

// Failures returns how often a connection could not be opened or accepted for want of a
// descriptor, a local port, or memory.
func (d *Descriptors) Failures() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.failed
}

// InUse returns how many descriptors connections to origins, and attempts to open one, take.
func (d *Descriptors) InUse() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.inUse
}

// perDial is what an attempt to connect takes until it has succeeded: net.Dialer asks for
// IPv4 and IPv6 addresses at once, and tries both.
const perDial = 2

// dial opens a connection to an origin within the bound, and counts it until it is closed.
// When descriptors have run out it closes idle connections and tries once more.
// It fails with policy.ErrExhausted where that says nothing about the origin.
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
		d.give(perDial)
		if exhausted(err) {
			err = d.fail(err)
		}
		return nil, err
	}
	tcp, ok := conn.(*net.TCPConn)
	if !ok { // a DNS lookup leaves none
		d.give(perDial)
		return conn, nil
	}
	d.give(perDial - 1)
	return &countedConn{TCPConn: tcp, of: d}, nil
}

// look is dial for a DNS lookup.
func (d *Descriptors) look(up func() error) error {
	_, err := d.dial(func() (net.Conn, error) { return nil, up() })
	return err
}

// take reserves n descriptors, for which it closes idle connections if need be. It reports
// whether there were enough.
func (d *Descriptors) take(n int) bool {
	const attempts = 4 // another goroutine may take what one has freed
	for range attempts {
		d.mu.Lock()
		enough := d.Limit == 0 || d.inUse+n <= d.origins()
		if enough {
			d.inUse += n
		}
		d.mu.Unlock()
		if enough || !d.closeSome(n) {
			return enough
		}
	}
	return false
}

func (d *Descriptors) give(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.inUse -= n
}

// add makes the idle connections of u some that can be closed, until remove.
func (d *Descriptors) add(u *Transport) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pools = append(d.pools, u)
}

func (d *Descriptors) remove(u *Transport) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pools = slices.DeleteFunc(slices.Clone(d.pools), func(other *Transport) bool { return other == u })
}

// closeSome closes n connections that have been idle for longest, and reports whether it may
// have closed any. Transport can only close all that it keeps, so that comes last.
func (d *Descriptors) closeSome(n int) bool {
	d.mu.Lock()
	pools := d.pools
	d.mu.Unlock()
	closed := 0
	for _, u := range pools {
		if u.http1 != nil {
			closed += u.http1.closeOldest(n - closed)
		}
	}
	return closed > 0 || d.sweep(pools)
}

// closeIdle closes all idle connections.
func (d *Descriptors) closeIdle() {
	d.mu.Lock()
	pools := d.pools
	d.mu.Unlock()
	for _, u := range pools {
		if u.http1 != nil {
			u.http1.closeOldest(maxIdle)
		}
	}
	d.sweep(pools)
}

const (
	// sweepEvery bounds the work that dials make when all descriptors are in use.
	sweepEvery = 100 * time.Millisecond
	// sweepWait is how long a dial waits for idle connections to be closed. TLS takes 5 s to
	// close a connection whose origin does not read.
	sweepWait = 100 * time.Millisecond
)

// sweep closes the idle connections of the transports, or waits for another goroutine that
// does. It reports false if that was done a moment ago.
func (d *Descriptors) sweep(pools []*Transport) bool {
	done := d.startSweep(pools)
	if done == nil {
		return false
	}
	late := time.NewTimer(sweepWait)
	defer late.Stop()
	select {
	case <-done:
	case <-late.C:
	}
	return true
}

// startSweep returns what is closed when the sweep is done that it has started, or that was
// under way; nil if the last one was a moment ago.
func (d *Descriptors) startSweep(pools []*Transport) (done chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.sweeps != nil {
		return d.sweeps
	}
	if time.Since(d.swept) < sweepEvery {
		return nil
	}
	done = make(chan struct{})
	d.sweeps, d.swept = done, time.Now()
	go func() {
		for _, u := range pools {
			u.netHTTP.CloseIdleConnections()
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		d.sweeps = nil
		close(done)
	}()
	return done
}

// A countedConn is counted in its Descriptors until it is closed.
type countedConn struct {
	*net.TCPConn
	of   *Descriptors
	once sync.Once
}

func (c *countedConn) Close() error {
	err := c.TCPConn.Close()
	c.once.Do(func() { c.of.give(1) })
	return err
}
