package audit

import (
	"bytes"
	"errors"
)

// trial is written to find out whether records can be: as long as nearly all of them, and an
// empty line to readers where it cannot be taken back.
var trial = append(bytes.Repeat([]byte{' '}, 4<<10-1), '\n')

var errUntried = errors.New("it has not been tried yet")

// Try finds out, before the first Write, whether records can be written: [Log.Check] writes
// none, and on a full disk the first requests would be served before the log fails. A log that
// fails is tried again each second.
func (l *Log) Try() {
	l.failing.Store(&errUntried)
	l.queue.settleSoon(hangs)
	l.failing.CompareAndSwap(&errUntried, &errTooSlow)
	if err := l.Err(); err != nil {
		l.log.Error(unwritable, "error", err, "lost", 0)
	}
}

// recovered tries whether records can be written again, with no request to wait for: with
// log.audit_required none may come, since the gate is not ready until they can.
func (l *Log) recovered() bool {
	if err := l.try(); err != nil {
		l.failing.Store(&err)
		return false
	}
	l.works()
	return true
}

func (l *Log) try() error {
	if l.file == nil {
		n, err := l.out.Write(trial)
		l.torn = err != nil && (l.torn || n > 0)
		return err
	}
	defer l.file.unlock()
	if _, err := l.ready(len(trial)); err != nil {
		return err
	}
	return l.file.try()
}

// works takes down that records can be written.
func (l *Log) works() {
	if was := l.failing.Swap(nil); was != nil && was != &errUntried {
		l.log.Info("the audit log is written again", "lost", l.lost.Load())
	}
}

// try appends the trial, and takes it back from a regular file.
func (f *file) try() error {
	n, err := f.f.Write(trial)
	switch {
	case n > 0 && !f.stream:
		f.takeBack(f.size+int64(n), f.size)
	case n > 0 && err != nil:
		f.torn = true
	}
	return err
}
