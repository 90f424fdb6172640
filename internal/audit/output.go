package audit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
)

// maxFile is the size at which a file is rotated, in bytes.
const maxFile = 100 << 20

// An output is what entries are appended to: standard output, a named pipe, or a file that is
// rotated. Several gates may write to one file: each locks it for a write, and opens it again
// if it has been renamed or removed.
type output struct {
	path   string // "-": stdout
	stdout io.Writer
	max    int64  // bytes of a file
	keep   int    // number of rotated files
	last   func() // writes the last line of this gate to a file before it is rotated; may be nil
	log    *slog.Logger

	f      *os.File
	size   int64
	stream bool // standard output or a pipe: nothing can be removed from it
	fresh  bool // opened, and without a line of this gate since
	dirty  bool // the disk may not have what was written
	opened bool // since sync: the disk may not have the name of the file
	torn   bool // it ends in the middle of a line

	locked   bool
	lockless bool // another process has not released the lock in time
}

// check reports whether the output can be opened.
func (o *output) check() error {
	if o.path == "-" {
		o.stream, o.fresh = true, true
		_, err := o.stdout.Write(nil)
		return err
	}
	defer o.unlock()
	return o.prepare(0)
}

// prepare opens and locks the output, and rotates it if it has no room for n more bytes.
func (o *output) prepare(n int) error {
	if o.path == "-" {
		return nil
	}
	const tries = 10 // other gates may rotate the file at the same time
	for range tries {
		if o.f == nil {
			if err := o.open(); err != nil {
				return err
			}
		}
		o.lock()
		if !isNamed(o.f, o.path) {
			o.close()
			continue
		}
		info, err := o.f.Stat()
		if err != nil {
			return err
		}
		o.size, o.stream = info.Size(), !info.Mode().IsRegular()
		if o.stream {
			return nil
		}
		if o.fresh {
			o.repair()
		}
		if o.size == 0 || o.size+int64(n) <= o.max {
			return nil
		}
		if !o.fresh && o.last != nil {
			o.last()
		}
		if err := o.rotate(); err != nil {
			return fmt.Errorf("it is full and can't be rotated: %w", err)
		}
	}
	return errors.New("it is replaced again and again")
}

func (o *output) open() (err error) {
	if err := os.MkdirAll(filepath.Dir(o.path), 0o700); err != nil {
		return err
	}
	// O_WRONLY would wait for the reader of a pipe, and repair reads the end of a file.
	f, err := os.OpenFile(o.path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	o.f, o.fresh, o.opened, o.torn, o.lockless = f, true, true, false, false
	return nil
}

// write appends lines. It returns how many bytes of whole lines are written.
func (o *output) write(lines []byte) (int, error) {
	w := o.stdout
	if o.f != nil {
		w = o.f
	}
	if o.torn {
		n, err := w.Write([]byte{'\n'})
		o.size += int64(n)
		if err != nil {
			return 0, err
		}
		o.torn = false
	}
	n, err := w.Write(lines)
	o.size += int64(n)
	o.dirty = o.dirty || n > 0
	if err == nil {
		return n, nil
	}
	whole := bytes.LastIndexByte(lines[:n], '\n') + 1
	o.removeLast(n - whole)
	return whole, err
}

// removeLast removes the last n bytes. If that is impossible, as after a write of another
// gate, the next write begins with an end of line.
func (o *output) removeLast(n int) {
	if n == 0 {
		return
	}
	if info, err := o.f.Stat(); !o.stream && err == nil && info.Size() == o.size && o.f.Truncate(o.size-int64(n)) == nil {
		o.size -= int64(n)
		return
	}
	o.torn = true
}

// probeText is as long as nearly all entries. Readers of a log skip it as an empty line.
var probeText = append(bytes.Repeat([]byte{' '}, 4<<10-1), '\n')

// probe writes probeText, and removes it from a file.
func (o *output) probe() error {
	n, err := o.write(probeText)
	if !o.stream {
		o.removeLast(n)
	}
	return err
}

// sync waits until the disk has what has been written.
func (o *output) sync() {
	if o.f != nil && o.dirty {
		_ = o.f.Sync() // not possible for a pipe
		o.dirty = false
	}
	if o.f == nil || !o.opened {
		return
	}
	if dir, err := os.Open(filepath.Dir(o.path)); err == nil {
		_ = dir.Sync() // not every system can
		dir.Close()
	}
	o.opened = false
}

func (o *output) close() error {
	if o.f == nil {
		return nil
	}
	o.sync()
	err := o.f.Close() // which releases the lock
	o.f, o.locked = nil, false
	return err
}

// isNamed reports whether an open file has this path.
func isNamed(f *os.File, path string) bool {
	open, err := f.Stat()
	named, errNamed := os.Stat(path)
	return err == nil && errNamed == nil && os.SameFile(open, named)
}
