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

// errOther says that another gate writes the file.
var errOther = errors.New("another gate writes it")

// An output is what entries are appended to: standard output, a named pipe, or a file that is
// rotated. The file is locked: it is the log of one gate. It is begun again if it has been renamed or removed.
type output struct {
	path   string // "-": stdout
	stdout io.Writer
	max    int64  // bytes of a file
	keep   int    // number of rotated files
	last   func() // writes the last line to a file before it is rotated
	log    *slog.Logger

	f      *os.File
	size   int64
	stream bool // standard output or a pipe: nothing can be removed from it
	fresh  bool // opened, and without a line of this gate since
	dirty  bool // the disk may not have what was written
	opened bool // since sync: the disk may not have the name of the file
	torn   bool // it ends in the middle of a line
}

func isStream(path string) bool {
	info, err := os.Stat(path)
	return path == "-" || err == nil && !info.Mode().IsRegular()
}

// open opens and locks the output.
func (o *output) open() (err error) {
	o.fresh, o.opened, o.torn = true, true, false
	if o.path == "-" {
		o.stream = true
		_, err := o.stdout.Write(nil)
		return err
	}
	if err := os.MkdirAll(filepath.Dir(o.path), 0o700); err != nil {
		return err
	}
	// O_WRONLY would wait for the reader of a pipe.
	f, err := os.OpenFile(o.path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil && info.Mode().IsRegular() && isLocked(f) {
		err = errOther
	}
	if err != nil {
		f.Close()
		return err
	}
	o.f, o.size, o.stream = f, info.Size(), !info.Mode().IsRegular()
	return nil
}

// begin goes on behind the first size bytes of the file that is open. With 0 it begins another, and renames this one
// if there is anything in it.
func (o *output) begin(size int64) error {
	switch {
	case o.stream || o.size == size:
		return nil
	case size > 0:
		o.log.Warn("the audit log ended in the middle of a record, as after a sudden end; that half is removed", "file", o.path, "bytes", o.size-size)
		o.size = size
		return o.f.Truncate(size)
	}
	o.close()
	name, err := o.rename()
	if err != nil {
		return err
	}
	o.log.Warn("the audit log does not go on in this file, which is renamed", "file", o.path, "now", name)
	return o.open()
}

// prepare opens the output if that is necessary, and rotates it if it has no room for n more bytes.
func (o *output) prepare(n int) error {
	if o.path == "-" {
		return nil
	}
	if o.f != nil && !o.isNamed() {
		o.close()
	}
	if o.f != nil && !o.stream && o.size > 0 && o.size+int64(n) > o.max {
		if !o.fresh {
			o.last()
		}
		if err := o.rotate(); err != nil {
			return fmt.Errorf("it is full and can't be rotated: %w", err)
		}
	}
	if o.f != nil {
		return nil
	}
	if err := o.open(); err != nil {
		return err
	}
	return o.begin(0)
}

// isNamed reports whether the open file still has its path, and notes its size.
func (o *output) isNamed() bool {
	open, err := o.f.Stat()
	if err != nil {
		return false
	}
	o.size = open.Size()
	named, err := os.Stat(o.path)
	return err == nil && os.SameFile(open, named)
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

// removeLast removes the last n bytes. If that is impossible, the next write begins with an end of line.
func (o *output) removeLast(n int) {
	if n > 0 && (o.stream || o.f.Truncate(o.size-int64(n)) != nil) {
		o.torn = true
		return
	}
	o.size -= int64(n)
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
	o.f = nil
	return err
}
