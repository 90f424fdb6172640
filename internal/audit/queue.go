package audit

import (
	"bytes"
	"sync"
)

// maxPending bounds the lines that wait for a disk or a pipe, in bytes.
const maxPending = 16 << 20

// A queue holds lines until they are written, so that a disk that hangs, or a pipe that is
// not read, does not hold up requests.
type queue struct {
	wake   chan struct{} // receives a value when there are lines
	closed chan struct{} // closed when add fails from now on

	mu      sync.Mutex
	pending []byte // whole lines
	spare   []byte // memory for pending
}

func newQueue() *queue {
	return &queue{wake: make(chan struct{}, 1), closed: make(chan struct{})}
}

// add appends a line. The error is errTooSlow if there is no room.
func (q *queue) add(line []byte) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	select {
	case <-q.closed:
		return errTooSlow
	default:
	}
	if len(q.pending)+len(line) > maxPending {
		return errTooSlow
	}
	q.pending = append(q.pending, line...)
	select {
	case q.wake <- struct{}{}:
	default: // there is a value already
	}
	return nil
}

// take removes all lines and returns them. They are valid until the next call.
func (q *queue) take() (lines []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	lines, q.pending = q.pending, q.spare[:0]
	if q.spare = lines; cap(lines) > 1<<20 {
		q.spare = nil // memory of a burst
	}
	return lines
}

// close makes add fail.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	close(q.closed)
}

// count returns the number of lines.
func (q *queue) count() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return bytes.Count(q.pending, []byte{'\n'})
}
