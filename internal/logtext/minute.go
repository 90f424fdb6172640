package logtext

import (
	"sync"
	"time"
)

// Minute permits a line once a minute. Its zero value permits the first one at once. It is safe for concurrent use.
type Minute struct {
	mu     sync.Mutex
	logged time.Time
	events int // since then
}

// Add counts an event. If a line is due it returns how many events there were since the last line, with this one,
// and the caller logs them. Otherwise it returns 0.
func (m *Minute) Add() (due int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.events++
	if time.Since(m.logged) >= time.Minute {
		m.logged, due, m.events = time.Now(), m.events, 0
	}
	return due
}
