package audit

import "time"

const (
	// lockWait bounds the wait for another gate that writes to the file. It is longer
	// than one takes to look at the end of a file.
	lockWait  = 5 * time.Second
	lockPause = 5 * time.Millisecond
)

// lock keeps other gates from the file: they must not write behind half a record before
// it is taken back, nor to a file that is being put aside. Where there are no locks, or
// somebody does not give one back, the gate goes on without.
func (f *file) lock() {
	if f.locked || f.alone {
		return
	}
	for late := time.Now().Add(lockWait); ; time.Sleep(lockPause) {
		got, busy := tryLock(f.f)
		f.locked = got
		if got || !busy {
			return
		}
		if time.Now().After(late) {
			f.alone = true
			return
		}
	}
}

func (f *file) unlock() {
	if f.locked {
		unlock(f.f)
		f.locked = false
	}
}
