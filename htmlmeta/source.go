package htmlmeta

import (
	"errors"
	"io"
)

// errLimit ends a page that is longer than MaxBytes.
var errLimit = errors.New("page exceeds the limit")

// A wire is the body as received. It remembers the error that ended it, since a
// decoder may report a broken connection as a broken stream.
type wire struct {
	r   io.Reader
	err error // other than io.EOF
}

func (w *wire) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	if err != nil && err != io.EOF {
		w.err = err
	}
	return n, err
}

// limited ends with errLimit if there are more bytes than the limit. Its errors persist, so
// that it may be read again after one.
type limited struct {
	r    io.Reader
	left int
	err  error
}

func (l *limited) Read(p []byte) (int, error) {
	if l.err != nil {
		return 0, l.err
	}
	// A page that is exactly as long as the limit is complete.
	n, err := l.r.Read(p[:min(len(p), l.left+1)])
	if n > l.left {
		n, err = l.left, errLimit
	}
	l.left -= n
	l.err = err
	return n, err
}
