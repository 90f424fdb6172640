package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// maxFile is the size at which a file is rotated, in bytes.
const maxFile = 100 << 20

// A file is what records are appended to. When it is full it is renamed by the time,
// and another is begun. It finds out when it is removed, or another takes its place.
type file struct {
	path string
	max  int64 // bytes
	keep int   // of those that are full
	f    *os.File
	size int64
	torn bool // what was not written whole could not be taken back

	opened int  // how often
	looked bool // at how it ends, since it was opened
	stream bool // it is no regular file
	locked bool
	alone  bool // it can't be locked
}

// ready makes the file fit for n more bytes, and keeps other gates from it until
// unlock. It reports whether it is empty, and what was cut off from its end because it
// was no whole line.
func (f *file) ready(n int) (empty bool, cut int64, err error) {
	const tries = 10 // others may put it aside all the while
	for range tries {
		if f.f == nil {
			err = f.open()
		}
		if err != nil {
			return false, cut, err
		}
		f.lock()
		if !f.same() {
			f.close()
			continue
		}
		info, err := f.f.Stat()
		if err != nil {
			return false, cut, err
		}
		if f.stream = !info.Mode().IsRegular(); f.stream {
			return false, cut, nil
		}
		f.size = info.Size()
		if !f.looked {
			cut += f.mend()
		}
		if f.size == 0 || f.size+int64(n) <= f.max {
			return f.size == 0, cut, nil
		}
		if err := f.rotate(); err != nil {
			return false, cut, fmt.Errorf("it is full, and can't be put aside: %w", err)
		}
	}
	return false, cut, errors.New("it is replaced again and again")
}

// same reports whether the open file still is the one of that name.
func (f *file) same() bool {
	there, err := os.Stat(f.path)
	if err != nil {
		return false
	}
	open, err := f.f.Stat()
	return err == nil && os.SameFile(there, open)
}

func (f *file) open() (err error) {
	if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		return err
	}
	how := os.O_WRONLY
	if info, err := os.Stat(f.path); err == nil && info.Mode()&fs.ModeNamedPipe != 0 {
		how = os.O_RDWR // else it waits for a reader
	}
	if f.f, err = os.OpenFile(f.path, how|os.O_APPEND|os.O_CREATE, 0o600); err != nil {
		f.f = nil
		return err
	}
	f.opened++
	f.looked, f.torn, f.alone = false, false, false
	return nil
}

// mend looks at the end of a file that has just been opened, and returns how much it has
// cut off.
func (f *file) mend() (cut int64) {
	f.looked = true
	tail, ok := f.tail()
	switch {
	case ok && len(tail) == 0:
	case ok && isTorn(tail):
		cut = int64(len(tail))
		f.takeBack(f.size, f.size-cut)
	default:
		f.torn = true // whatever it is, the next record has a line of its own
	}
	return cut
}

// tail returns what is behind the last whole line. Another gate may be about to write
// the rest of it, so it is looked at until nothing is added any more.
func (f *file) tail() (tail []byte, ok bool) {
	for range 10 {
		tail, ok = tailOf(f.path, f.size)
		if len(tail) == 0 {
			return tail, ok
		}
		time.Sleep(settling)
		info, err := f.f.Stat()
		if err != nil || info.Size() == f.size {
			return tail, ok && err == nil
		}
		f.size = info.Size()
	}
	return tail, false // it never rests: nothing of it is ours
}

// settling is longer than it takes to write some megabytes.
const settling = 200 * time.Millisecond

// isTorn reports whether the end of a file is the beginning of one record, or what a
// file system leaves in its place.
func isTorn(tail []byte) bool {
	const begin = `{"time":"`
	tail = bytes.TrimRight(tail, "\x00")
	n := min(len(tail), len(begin))
	if string(tail[:n]) != begin[:n] {
		return false
	}
	var whole json.RawMessage
	err := json.NewDecoder(bytes.NewReader(tail)).Decode(&whole)
	return err == io.EOF || err == io.ErrUnexpectedEOF // else there is more than one, or none
}

// tailOf returns what is behind the last whole line of a file: a sudden end may have
// left that. It is not ok if it can't be read, or is longer than any record.
func tailOf(path string, size int64) (tail []byte, ok bool) {
	in, err := os.Open(path)
	if err != nil {
		return nil, false
	}
	defer in.Close()
	n := min(size, maxLine)
	tail = make([]byte, n)
	if _, err := in.ReadAt(tail, size-n); err != nil {
		return nil, false
	}
	i := bytes.LastIndexByte(tail, '\n')
	return tail[i+1:], i >= 0 || n == size
}

// write appends whole lines, and returns how many bytes of them are in the file: on
// an error, too, those are whole lines.
func (f *file) write(lines []byte) (int, error) {
	if f.torn {
		if _, err := f.f.Write([]byte{'\n'}); err != nil {
			return 0, err
		}
		f.torn = false
	}
	n, err := f.f.Write(lines)
	if err != nil {
		whole := bytes.LastIndexByte(lines[:n], '\n') + 1
		if whole < n {
			f.takeBack(f.size+int64(n), f.size+int64(whole))
		}
		n = whole
	}
	f.size += int64(n)
	return n, err
}

// takeBack cuts off what is behind size of a file that ended at end; where that is not
// possible, as since another gate has written, the next record begins with a line of its
// own.
func (f *file) takeBack(end, size int64) {
	info, err := f.f.Stat()
	if err != nil || info.Size() != end || f.f.Truncate(size) != nil {
		f.torn = true
		return
	}
	f.size = size
}

// sync waits until the disk has what has been written.
func (f *file) sync() {
	if f.f != nil {
		_ = f.f.Sync() // a pipe has nothing to wait for
	}
}

func (f *file) close() error {
	if f.f == nil {
		return nil
	}
	err := f.f.Close() // unlocks it, too
	f.f, f.locked = nil, false
	return err
}

// stamp is how the time stands in the name of a file that is full.
const stamp = "2006-01-02T15-04-05.000"

// rotate puts the file aside.
func (f *file) rotate() error {
	if f.locked {
		defer f.close() // only then another gate may look
	} else if err := f.close(); err != nil { // where there are no locks, open files may not be renamed
		return err
	}
	if f.keep == 0 {
		return os.Remove(f.path)
	}
	return f.putAside()
}

func (f *file) putAside() error {
	ext := filepath.Ext(f.path)
	name := ""
	for at := time.Now().UTC(); ; at = at.Add(time.Millisecond) {
		name = strings.TrimSuffix(f.path, ext) + "-" + at.Format(stamp) + ext
		if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if err := os.Rename(f.path, name); err != nil {
		return err
	}
	aside := Aside(f.path)
	for _, old := range aside[:max(len(aside)-f.keep, 0)] {
		os.Remove(old) // tried again when the next is full
	}
	return nil
}

// Aside returns the files that a log has put aside, the oldest first, compressed
// or not.
func Aside(path string) (all []string) {
	ext := filepath.Ext(path)
	prefix := strings.TrimSuffix(filepath.Base(path), ext) + "-"
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return nil
	}
	for _, e := range entries {
		middle, ok := strings.CutPrefix(e.Name(), prefix)
		if !ok {
			continue
		}
		if middle, ok = strings.CutSuffix(strings.TrimSuffix(middle, ".gz"), ext); !ok {
			continue
		}
		if _, err := time.Parse(stamp, middle); err == nil {
			all = append(all, filepath.Join(filepath.Dir(path), e.Name()))
		}
	}
	slices.Sort(all)
	return all
}
