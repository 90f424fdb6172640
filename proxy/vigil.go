package proxy

import (
	"sync"
	"sync/atomic"
	"time"
)

// A vigil ends what has been silent for too long. It can be held over anything
// that can be closed, deadlines or not.
type vigil struct {
	end   func()
	start time.Time
	last  atomic.Int64 // when something was heard, after start
	held  atomic.Int64 // how many have reason to be silent

	mu       sync.Mutex
	patience time.Duration
	timer    *time.Timer
	over     bool // nobody is to be ended any more
	ended    bool
}

// keepVigil calls end, once, when nothing has been heard for as long as patience.
func keepVigil(patience time.Duration, end func()) *vigil {
	v := &vigil{end: end, start: time.Now(), patience: patience}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.timer = time.AfterFunc(patience, v.look)
	return v
}

// heard tells of a sign of life.
func (v *vigil) heard() { v.last.Store(int64(time.Since(v.start))) }

// hold keeps it from ending anything, until as many times release is called. Nobody
// is held by a nil vigil.
func (v *vigil) hold() {
	if v != nil {
		v.held.Add(1)
	}
}

func (v *vigil) release() {
	if v != nil {
		v.heard()
		v.held.Add(-1)
	}
}

// shorten makes it less patient.
func (v *vigil) shorten(patience time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.over && patience < v.patience {
		v.patience = patience
		v.timer.Reset(v.left())
	}
}

func (v *vigil) left() time.Duration {
	return v.patience - (time.Since(v.start) - time.Duration(v.last.Load()))
}

func (v *vigil) look() {
	v.mu.Lock()
	if v.over {
		v.mu.Unlock()
		return
	}
	left := v.left()
	if v.held.Load() > 0 {
		left = v.patience
	}
	if left > 0 {
		v.timer.Reset(left)
		v.mu.Unlock()
		return
	}
	v.over, v.ended = true, true
	v.mu.Unlock()
	v.end()
}

// stop ends the vigil, and reports whether it was it that ended the other.
func (v *vigil) stop() (ended bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.over = true
	v.timer.Stop()
	return v.ended
}
