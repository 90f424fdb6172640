package body

import (
	"sync"
	"time"
)

// An IdleTimer calls a function when nothing has moved for too long: in a Read or a Write
// between Start and Pause, or in a tunnel whose timer is started anew by every byte.
//
// The deadlines of net/http do not help: in HTTP/2 they are timers that end the stream when
// they fire, even if no caller waits; in HTTP/1 they are those of the whole connection, and
// net/http reads on behind a body to notice a client that disconnects. So a deadline is set
// only to break off what has taken too long.
//
// Transport may still read a body when its request has been served. The connection then
// belongs to another request, and to set the deadline of a finished HTTP/2 stream panics:
// so the function is called under the lock that End takes, and never after End.
type IdleTimer struct {
	idle time.Duration
	end  func()

	mu      sync.Mutex
	timer   *time.Timer
	running int       // calls of Start less calls of Pause; it runs if that is positive
	since   time.Time // of the last Start
	used    bool      // Start has been called
	fired   bool
	ended   bool
}

// Init makes a zero IdleTimer one that calls end, once, when it has run for as long as idle.
func (t *IdleTimer) Init(idle time.Duration, end func()) { t.idle, t.end = idle, end }

// Idle returns how long the timer runs.
func (t *IdleTimer) Idle() time.Duration { return t.idle }

// Start starts the timer from the beginning. The timer runs only while Start has been called
// more often than Pause.
func (t *IdleTimer) Start() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.used = true; t.ended {
		return
	}
	t.running++
	t.since = time.Now()
	if t.running > 0 {
		t.setLocked()
	}
}

// Pause stops the timer until the next Start.
func (t *IdleTimer) Pause() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running--
	if t.timer != nil && t.running <= 0 {
		t.timer.Stop()
	}
}

// Shorten makes the timer run for a shorter time, counted from the last Start.
func (t *IdleTimer) Shorten(idle time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended || idle >= t.idle {
		return
	}
	t.idle = idle
	if t.running > 0 {
		t.setLocked()
	}
}

// setLocked sets the timer for what is left. The caller holds mu.
func (t *IdleTimer) setLocked() {
	left := t.idle - time.Since(t.since)
	if t.timer == nil {
		t.timer = time.AfterFunc(left, t.fire)
	} else {
		t.timer.Reset(left)
	}
}

func (t *IdleTimer) fire() {
	t.mu.Lock()
	defer t.mu.Unlock()
	// It may have been stopped or started anew when it had fired already.
	if t.ended || t.fired || t.running <= 0 || time.Since(t.since) < t.idle {
		return
	}
	t.fired = true
	t.end()
}

// Fired reports whether the function has been called.
func (t *IdleTimer) Fired() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.fired
}

// End stops the timer for good, and reports whether it was ever started.
func (t *IdleTimer) End() (used bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	if t.timer != nil {
		t.timer.Stop()
	}
	return t.used
}
