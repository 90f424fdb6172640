package client

import (
	"context"
	"crypto/tls"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// disconnectDelay is how long a request is served before its client is watched.
const disconnectDelay = 250 * time.Millisecond

// A DisconnectDetector notices that the client of a connection disconnects while its HTTP/1
// request is served.
//
// net/http reads one byte in the background of every request, in a goroutine of its own, which it
// interrupts by a deadline when the request has been served. That takes a tenth of the time of a
// small request, and most requests have been served before their client could disconnect. So the
// detector answers this read at once, and reads itself in the background of requests that take
// longer than disconnectDelay.
//
// It relies on net/http to read one byte there and nowhere else while a connection is in
// http.StateActive, and to take 0 bytes without an error for the end of this read.
// TestBackgroundRead fails if that changes. To switch the detector off, call neither ConnContext
// nor ConnState.
type DisconnectDetector struct {
	read            func([]byte) (int, error)
	setReadDeadline func(time.Time) error

	answer atomic.Bool // answer net/http's read of one byte

	cancel context.CancelFunc // ends the context of the connection, and so of the request

	mu      sync.Mutex
	serving bool // a request is served, and watched
	timer   *time.Timer
	done    chan struct{} // closed when the detector's own read has ended; nil: none was started

	ahead []byte // what that read has read: for the next Read, which cannot begin before Stop
}

// NewDisconnectDetector returns the detector of a connection that is read with read.
func NewDisconnectDetector(read func([]byte) (int, error), setReadDeadline func(time.Time) error) *DisconnectDetector {
	return &DisconnectDetector{read: read, setReadDeadline: setReadDeadline}
}

// ConnContext is called by the http.Server of the connection. It returns a context that ends when
// the client disconnects while a request is served; it is the parent of the request's context.
func (d *DisconnectDetector) ConnContext(ctx context.Context) context.Context {
	ctx, d.cancel = context.WithCancel(ctx)
	return ctx
}

// ConnState is called by the http.Server of the connection.
func (d *DisconnectDetector) ConnState(state http.ConnState) {
	d.answer.Store(state == http.StateActive)
}

// Read reads for net/http.
func (d *DisconnectDetector) Read(p []byte) (int, error) {
	if len(p) == 1 && d.answer.Load() {
		return 0, nil
	}
	if len(d.ahead) > 0 {
		n := copy(p, d.ahead)
		d.ahead = d.ahead[n:]
		return n, nil
	}
	return d.read(p)
}

// Begin is called when a request is served. A request with a body is left to net/http, which
// reads the body first.
func (d *DisconnectDetector) Begin(hasBody bool) {
	if hasBody {
		d.answer.Store(false)
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.serving = true
	if d.timer == nil {
		d.timer = time.AfterFunc(disconnectDelay, d.watch)
	} else {
		d.timer.Reset(disconnectDelay)
	}
}

// Watch begins to watch the client at once, for a request that will take long.
func (d *DisconnectDetector) Watch() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.serving {
		d.timer.Reset(0)
	}
}

// watch reads until the client sends something or disconnects, or until Stop.
func (d *DisconnectDetector) watch() {
	d.mu.Lock()
	if !d.serving || d.done != nil {
		d.mu.Unlock()
		return
	}
	done := make(chan struct{})
	d.done = done
	d.mu.Unlock()
	defer close(done)
	p := make([]byte, 1)
	n, err := d.read(p)
	d.ahead = p[:n]
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil && n == 0 && d.serving { // not if Stop has interrupted the read
		d.cancel()
	}
}

// Stop is called when the request has been served, and before its connection is hijacked.
func (d *DisconnectDetector) Stop() {
	d.mu.Lock()
	if d.serving {
		d.timer.Stop()
	}
	done := d.done
	d.serving, d.done = false, nil
	d.mu.Unlock()
	if done != nil {
		_ = d.setReadDeadline(time.Unix(1, 0))
		<-done
		_ = d.setReadDeadline(time.Time{})
	}
}

// HTTP1InTLS is a connection in TLS inside a tunnel, over which HTTP/1 is spoken.
type HTTP1InTLS struct {
	*tls.Conn
	*DisconnectDetector
}

// NewHTTP1InTLS returns the connection with a detector.
func NewHTTP1InTLS(c *tls.Conn) *HTTP1InTLS {
	return &HTTP1InTLS{c, NewDisconnectDetector(c.Read, c.SetReadDeadline)}
}

func (c *HTTP1InTLS) Read(p []byte) (int, error) { return c.DisconnectDetector.Read(p) }
