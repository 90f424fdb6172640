package cli

import (
	"bytes"
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"robotsgate/internal/config"
)

const (
	// pollInterval is the time between two reads of the configuration file.
	pollInterval = time.Second
	// settleInterval is the same after SIGHUP, where a person waits for the change.
	settleInterval = 100 * time.Millisecond
	// longMissing is the number of reads after which a file that can't be read counts as
	// missing. Until then it may be in the middle of being replaced.
	longMissing = 10
)

// watch sends a reason to read the file at path again: its contents have changed, or the
// process has received SIGHUP. It ends with ctx. An empty path is no file.
//
// It compares the contents, since the file is small. This notices a write in place, a
// rename over the file, and a replaced symbolic link, on every file system.
func watch(ctx context.Context, path string) <-chan string {
	changed := make(chan string)
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP) // never undone: SIGHUP must not end a gate that drains
	file := newWatchedFile(path)
	go func() {
		tick := time.NewTicker(pollInterval)
		defer tick.Stop()
		for {
			why := ""
			select {
			case <-ctx.Done():
				return
			case <-hangup:
				why = "SIGHUP"
				file.settle(ctx)
			case <-tick.C:
				if why = file.poll(); why == "" {
					continue
				}
			}
			select {
			case changed <- why:
			case <-ctx.Done():
				return
			}
		}
	}()
	return changed
}

// A watchedFile remembers the contents of a file.
type watchedFile struct {
	path    string
	used    []byte // the contents that the gate uses
	last    []byte // the contents at the last read
	missing int    // reads in a row that failed
}

func newWatchedFile(path string) *watchedFile {
	f := &watchedFile{path: path}
	f.use()
	return f
}

// use reads the file for a gate that is about to read it, too.
func (f *watchedFile) use() {
	f.used = f.read()
	f.last = f.used
	f.missing = 0
}

// settle calls use until the file stays the same for settleInterval, at most 20 times.
func (f *watchedFile) settle(ctx context.Context) {
	for range 20 {
		f.use()
		select {
		case <-time.After(settleInterval):
		case <-ctx.Done():
			return
		}
		if bytes.Equal(f.read(), f.used) {
			return
		}
	}
}

// The reasons that poll returns.
const (
	fileChanged = "the file has changed"
	fileMissing = "the file is gone"
)

// poll reads the file and returns why the gate must read it again, "" if it need not.
// Contents count when two reads in a row find them, since the file may be in the middle
// of being written. A file that stays missing is reported once.
func (f *watchedFile) poll() string {
	now := f.read()
	settled := bytes.Equal(now, f.last)
	f.last = now
	if now == nil {
		if f.missing++; f.missing == longMissing && f.used != nil {
			return fileMissing
		}
		return ""
	}
	f.missing = 0
	if !settled || bytes.Equal(now, f.used) {
		return ""
	}
	f.used = now
	return fileChanged
}

// read returns the contents, nil if there are none. It does not read a pipe, which would
// be empty afterwards.
func (f *watchedFile) read() []byte {
	info, err := os.Stat(f.path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > config.MaxFileBytes {
		return nil
	}
	data, err := os.ReadFile(f.path)
	if err != nil {
		return nil
	}
	return data
}
