package audit

import (
	"bytes"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxPending bounds the lines that wait for a disk or a pipe, in bytes.
	maxPending = 16 << 20
	// closeWait is how long Close waits for them to be written.
	closeWait = 5 * time.Second
	// apart is the time between two writes where there is much to write: locking a file,
	// and looking whether it still is the one of its name, costs more than a record. What
	// comes now and then is written at once: ahead is for how long writes may follow each
	// other as they come.
	apart = 20 * time.Millisecond
	ahead = 200 * time.Millisecond
	// many is how much is written at once all the same, in bytes.
	many = 512 << 10
	// settleAfter is how long after lines they are settled, at most.
	settleAfter = time.Second
)

// A queue writes lines in the order in which they came, in a goroutine of its own:
// a disk that hangs, or a pipe that nobody reads, must not hold up requests. What
// comes while it is full is lost, and counted.
type queue struct {
	write  func(lines []byte, lost int)
	settle func() (again time.Duration)
	wake   chan struct{}      // holds one; lines have come, or many, or it is closed
	now    chan chan struct{} // settle is to be called at once, and then the channel closed
	done   chan struct{}      // closed when all is written
	began  atomic.Int64       // when what is under way at the disk was begun, in Unix nanoseconds; 0: nothing is

	mu      sync.Mutex
	pending []byte
	lost    int
	closed  bool
}

// newQueue passes on lines, at most maxPending bytes at a time, with the number of
// those lost before them. It calls settle a while after, and again when that says so.
func newQueue(write func(lines []byte, lost int), settle func() (again time.Duration)) *queue {
	q := &queue{write: write, settle: settle, wake: make(chan struct{}, 1), now: make(chan chan struct{}), done: make(chan struct{})}
	go q.run()
	return q
}

// add reports how many lines have been lost since the last that was passed on.
func (q *queue) add(line []byte) (lost int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || len(q.pending)+len(line) > maxPending {
		q.lost++
		return q.lost
	}
	before := len(q.pending)
	q.pending = append(q.pending, line...)
	if before == 0 || before < many && len(q.pending) >= many {
		q.call()
	}
	return 0
}

func (q *queue) call() {
	select {
	case q.wake <- struct{}{}:
	default: // it has been called
	}
}

// gather waits for more lines where writes have come too fast: the next is not to be
// before this time, by far.
func (q *queue) gather(next time.Time) {
	wait := time.Until(next.Add(-ahead))
	if wait <= 0 {
		return
	}
	q.mu.Lock()
	enough := q.closed || len(q.pending) >= many
	q.mu.Unlock()
	if enough {
		return
	}
	select {
	case <-q.wake:
	case <-time.After(wait):
	}
}

func (q *queue) run() {
	defer close(q.done)
	var spare []byte // two buffers take turns
	var due <-chan time.Time
	var next time.Time // write, if they were all apart
	for {
		select {
		case <-due:
			due = q.settleNow()
			continue
		case settled := <-q.now:
			due = q.settleNow()
			close(settled)
			continue
		case <-q.wake:
		}
		q.gather(next)
		q.mu.Lock()
		lines, lost, closed := q.pending, q.lost, q.closed
		q.pending, q.lost = spare[:0], 0
		q.mu.Unlock()
		if len(lines) > 0 || lost > 0 {
			q.time(func() { q.write(lines, lost) })
			if now := time.Now(); next.Before(now) {
				next = now
			}
			next = next.Add(apart)
		}
		if closed {
			return
		}
		if due == nil {
			due = time.After(settleAfter)
		}
		if spare = lines; cap(spare) > 1<<20 {
			spare = nil // after a jam
		}
	}
}

// settleNow calls settle, and returns when to call it again, nil if not.
func (q *queue) settleNow() (due <-chan time.Time) {
	q.time(func() {
		if again := q.settle(); again > 0 {
			due = time.After(again)
		}
	})
	return due
}

// settleSoon makes run call settle, and waits for that to end, for this long at most.
func (q *queue) settleSoon(wait time.Duration) {
	settled, late := make(chan struct{}), time.After(wait)
	select {
	case q.now <- settled:
	case <-late:
		return
	}
	select {
	case <-settled:
	case <-late:
	}
}

// time calls f, which may hang, so that busy can tell for how long.
func (q *queue) time(f func()) {
	q.began.Store(time.Now().UnixNano())
	f()
	q.began.Store(0)
}

// busy returns how long what is under way at the disk has taken.
func (q *queue) busy() time.Duration {
	began := q.began.Load()
	if began == 0 {
		return 0
	}
	return time.Duration(time.Now().UnixNano() - began)
}

// close writes what is left.
func (q *queue) close() error {
	q.mu.Lock()
	q.closed = true
	q.call()
	q.mu.Unlock()
	select {
	case <-q.done:
		return nil
	case <-time.After(closeWait):
		q.mu.Lock()
		defer q.mu.Unlock()
		return fmt.Errorf("it takes nothing: the last %d records and more are lost", q.lost+bytes.Count(q.pending, []byte{'\n'}))
	}
}
