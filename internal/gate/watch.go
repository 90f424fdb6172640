package gate

import (
	"bytes"
	"context"
	"iter"
	"os"
	"os/signal"
	"syscall"
	"time"

	"robotsgate/internal/field"
)

// pollInterval is the time between two reads of the configuration file.
const pollInterval = time.Second

// A WatchedFile remembers the contents of a file. It compares the contents, since the file is
// small. This notices a write in place, a rename over the file, and a replaced symbolic link, on
// every file system.
type WatchedFile struct {
	path   string
	hangup chan os.Signal
	used   []byte // the contents that the gate uses
	last   []byte // the contents at the last read
}

// Watch remembers the contents at path, and from now on the SIGHUPs to the process. An
// empty path is no file.
func Watch(path string) *WatchedFile {
	f := &WatchedFile{path: path, hangup: make(chan os.Signal, 1)}
	signal.Notify(f.hangup, syscall.SIGHUP) // never undone: SIGHUP must not end a gate that drains
	f.use()
	return f
}

// changes returns the reasons to read the file again, until ctx ends: its contents have changed,
// or the process has received SIGHUP.
func (f *WatchedFile) changes(ctx context.Context) iter.Seq[string] {
	return func(yield func(why string) bool) {
		tick := time.NewTicker(pollInterval)
		defer tick.Stop()
		for {
			why := ""
			select {
			case <-ctx.Done():
				return
			case <-f.hangup:
				why = "SIGHUP"
				f.use()
			case <-tick.C:
				if f.poll() {
					why = "the file has changed"
				}
			}
			// While the file was read ctx may have ended, and with it the gate's log.
			if why != "" && (ctx.Err() != nil || !yield(why)) {
				return
			}
		}
	}
}

// use reads the file for a gate that is about to read it, too.
func (f *WatchedFile) use() {
	f.used = f.read()
	f.last = f.used
}

// poll reads the file and reports whether the gate must read it again. Contents count when two reads in a row find them,
// since the file may be in the middle of being written. A file that is missing is no change.
func (f *WatchedFile) poll() bool {
	now := f.read()
	settled := bytes.Equal(now, f.last)
	f.last = now
	if now == nil || !settled || bytes.Equal(now, f.used) {
		return false
	}
	f.used = now
	return true
}

// read returns the contents, nil if there are none.
func (f *WatchedFile) read() []byte {
	data, err := field.ReadFile(f.path)
	if err != nil {
		return nil
	}
	return data
}
