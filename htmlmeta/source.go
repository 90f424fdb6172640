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

// limited counts the bytes that it returns and ends with errLimit if there are
// more than the limit. Its errors persist, so that it may be read again after one.
type limited struct {
	r    io.Reader
	left int
	n    int64
	err  error
}

func (l *limited) Read(p []byte) (int, error) {
	if l.err != nil {
		return 0, l.err
	}
	if len(p) == 0 {
		return 0, nil
	}
	over := l.left == 0
	if over {
		// A page that is exactly as long as the limit is complete.
		p = make([]byte, 1)
	} else {
		p = p[:min(len(p), l.left)]
	}
	n, err := readSome(l.r, p)
	l.err = err
	if over {
		if n > 0 {
			l.err = errLimit
		}
		return 0, l.err
	}
	l.left -= n
	l.n += int64(n)
	return n, err
}

// readSome reads at least one byte or returns an error.
func readSome(r io.Reader, p []byte) (int, error) {
	for range 100 {
		if n, err := r.Read(p); n > 0 || err != nil {
			return n, err
		}
	}
	return 0, io.ErrNoProgress
}
