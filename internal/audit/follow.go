package audit

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"robotsgate/internal/evidence"
)

// followInterval is the time between two looks at a log that is followed.
const followInterval = 250 * time.Millisecond

// Follow calls each for every line of a log that is not empty, also for those that are appended
// later, until ctx ends. It calls pause when each has been called for all lines that are there, and
// ends with its error. A line without its end is awaited. When the log has been rotated, Follow goes
// on in the new file; when it has been truncated, at its beginning.
func Follow(ctx context.Context, path string, each func(*Line), pause func() error) error {
	f := &follower{path: path, each: each, buffer: bufio.NewReaderSize(nil, evidence.MaxLine)}
	tick := time.NewTicker(followInterval)
	defer tick.Stop()
	for {
		err := f.poll(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err := errors.Join(err, pause()); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// A follower keeps its place in a log. It does not keep the file open: some systems don't rename
// open files, and the gate must.
type follower struct {
	path   string
	each   func(*Line)
	buffer *bufio.Reader

	file fs.FileInfo // that is read; nil: none yet
	next place       // after the last whole line that is not empty: the gate removes empty ones, its probes, again
}

// A place is the beginning of a line in a file.
type place struct {
	offset int64
	line   int // number of the line before
}

// poll reads what has been added since the last call.
func (f *follower) poll(ctx context.Context) error {
	file, err := os.Open(f.path)
	if errors.Is(err, fs.ErrNotExist) && f.file != nil {
		return nil // it has been rotated or removed, and the gate has not begun the next one
	}
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if f.file != nil && !os.SameFile(f.file, info) {
		if err := f.finish(ctx, info); err != nil {
			return err
		}
		f.next = place{}
	}
	f.file = info
	return f.read(ctx, file)
}

// finish reads the rest of a file that has been rotated, and the files between it and the new one.
func (f *follower) finish(ctx context.Context, newest fs.FileInfo) error {
	found := false
	for _, name := range RotatedFiles(f.path) {
		info, err := os.Stat(name)
		switch {
		case err != nil || strings.HasSuffix(name, ".gz"):
			continue
		case os.SameFile(info, newest): // it has been rotated meanwhile
			return nil
		case os.SameFile(info, f.file):
			found = true
		case found:
			f.next = place{}
		}
		if !found {
			continue
		}
		file, err := os.Open(name)
		if err != nil {
			continue // removed meanwhile
		}
		err = f.read(ctx, file)
		file.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// read passes on the whole lines from f.next on.
func (f *follower) read(ctx context.Context, file *os.File) error {
	info, err := file.Stat()
	if err != nil || info.Size() == f.next.offset {
		return err
	}
	if info.Size() < f.next.offset {
		f.next = place{}
	}
	if _, err := file.Seek(f.next.offset, io.SeekStart); err != nil {
		return err
	}
	f.buffer.Reset(readerUntil{ctx, file})
	number := f.next.line
	again := 0 // bytes at the end, which are read again: empty lines, and a line without its end
	found := false
	for text, errRead := range evidence.ReadLines(f.buffer) {
		if errRead != nil {
			return errRead
		}
		if text.Open && !text.Long {
			again += len(text.Text)
			break
		}
		number++
		if !text.Long && len(bytes.TrimSpace(text.Text)) == 0 {
			again += len(text.Text) + 1
			continue
		}
		text.Number = number
		if line := ParseLine(file.Name(), text); line != nil {
			f.each(line)
		}
		again, found, f.next.line = 0, true, number
	}
	if !found {
		return nil
	}
	end, err := file.Seek(0, io.SeekCurrent)
	f.next.offset = end - int64(again)
	return err
}

// A readerUntil reads until ctx ends.
type readerUntil struct {
	ctx context.Context
	r   io.Reader
}

func (r readerUntil) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}
