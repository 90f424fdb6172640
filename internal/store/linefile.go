package store

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"

	"robotsgate/internal/logtext"
	"robotsgate/internal/wholefile"
)

const (
	keepInterval = time.Second // between two writes; a kill loses what has changed since
	growth       = 1 << 20     // bytes that the file may grow by beyond twice its size, until it is written anew
	maxLine      = 1 << 20     // bytes
)

// A LineFile is a file of lines of JSON, each a value, the oldest first. Only one process may have it open.
type LineFile[T any] struct {
	path string
	kept func(all bool) []T
	log  *slog.Logger

	size, least int64 // of the file, and when it was written anew
	failed      bool  // the last write has: what it had is lost
	failures    logtext.Minute

	restored chan struct{} // closed when all values have been read
	stop     chan struct{}
	running  sync.WaitGroup
}

// OpenLineFile calls restore for each value in the file, in the background: [LineFile.Wait] waits for that. Until Close
// it then writes what kept returns: the values that have changed since the last call, or all if the file is written
// anew. What cannot be read is left out, and logged.
func OpenLineFile[T any](path string, kept func(all bool) []T, restore func(T), log *slog.Logger) *LineFile[T] {
	f := &LineFile[T]{path: path, kept: kept, log: log, failed: true, restored: make(chan struct{}), stop: make(chan struct{})}
	kept(false) // so that what changes from now on is known to restore
	f.running.Go(func() {
		f.restore(restore)
		close(f.restored)
		f.keep()
		for tick := time.NewTicker(keepInterval); ; f.keep() {
			select {
			case <-tick.C:
			case <-f.stop:
				tick.Stop()
				return
			}
		}
	})
	return f
}

// Wait waits until restore has been called for all values.
func (f *LineFile[T]) Wait() { <-f.restored }

// Close writes what has changed last. A nil LineFile has nothing to close.
func (f *LineFile[T]) Close() {
	if f == nil {
		return
	}
	close(f.stop)
	f.running.Wait()
	f.keep()
}

// restore reads the file.
func (f *LineFile[T]) restore(restore func(T)) {
	file, err := os.Open(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	damaged := 0
	if err == nil {
		defer file.Close()
		lines := bufio.NewScanner(file)
		lines.Buffer(nil, maxLine)
		for lines.Scan() {
			var value T
			if json.Unmarshal(lines.Bytes(), &value) != nil {
				damaged++ // such as the last line after a kill
				continue
			}
			restore(value)
		}
		err = lines.Err()
	}
	if err != nil || damaged > 0 {
		f.log.Warn("a file of data_dir can't be read whole, and what is missing is forgotten", "file", f.path, "damaged_lines", damaged, "error", err)
	}
}

// keep writes what has changed since the last time; all if the file is new, has grown too long, or lacks something.
func (f *LineFile[T]) keep() {
	anew := f.failed || f.size > 2*f.least+growth
	values := f.kept(anew)
	if len(values) == 0 && !anew {
		return
	}
	write := func(to *os.File) error {
		w := bufio.NewWriter(to)
		lines := json.NewEncoder(w)
		for _, v := range values {
			if err := lines.Encode(v); err != nil {
				return err
			}
		}
		err := w.Flush()
		f.size, _ = to.Seek(0, io.SeekCurrent)
		return err
	}
	var err error
	if anew {
		err = wholefile.WriteFunc(f.path, write)
		f.least = f.size
	} else {
		err = f.add(write)
	}
	if f.failed = err != nil; f.failed && f.failures.Add() > 0 {
		f.log.Error("a file of data_dir can't be kept, so that a restart forgets what it has; check the space and permissions of data_dir", "file", f.path, "error", err)
	}
}

// add writes to the end of the file.
func (f *LineFile[T]) add(write func(*os.File) error) error {
	file, err := os.OpenFile(f.path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	return errors.Join(write(file), file.Close())
}
