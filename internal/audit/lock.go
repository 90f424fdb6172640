package audit

import "time"

const (
	// lockWait bounds the wait for another gate that writes to the file.
	lockWait = 5 * time.Second
	// lockPause is the time between two tries.
	lockPause = 5 * time.Millisecond
)

// lock keeps other gates from writing, until unlock. Without it a gate could write between
// half an entry and its removal, or to a file that is being rotated. If the system has no
// locks, or the lock is not released in time, the gate writes without one. The lock is on
// o.f: gofrs/flock would open the path again, which may be another file after a rotation.
func (o *output) lock() {
	if o.locked || o.lockless {
		return
	}
	for deadline := time.Now().Add(lockWait); ; time.Sleep(lockPause) {
		var busy bool
		if o.locked, busy = tryLock(o.f); !busy {
			return
		}
		if o.lockless = time.Now().After(deadline); o.lockless {
			return
		}
	}
}

func (o *output) unlock() {
	if o.locked {
		unlock(o.f)
		o.locked = false
	}
}
