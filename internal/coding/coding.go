// Package coding undoes the content codings of HTTP messages (RFC 9110, 8.4.1):
// gzip, deflate, br and zstd, also several on top of each other.
//
// It is meant for input that nobody vouches for: memory is bounded by fixed
// windows, and what comes out is as large as the caller lets it be.
package coding

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

const (
	maxCodings = 3       // stacked; nobody has a use for more
	maxWindow  = 8 << 20 // bytes of zstd history, the bound of RFC 8878, 3.1.1.1.2
)

// ErrUnknown is what NewReader wraps for a coding that it can't undo.
var ErrUnknown = errors.New("unknown content coding")

// NewReader returns the content of r without the codings that the values of a
// Content-Encoding header name, in the order in which they were applied. It
// hands on what it has decoded without waiting for more input than that took.
// Closing it frees the decoders and leaves r open.
func NewReader(r io.Reader, contentEncoding []string) (io.ReadCloser, error) {
	names, err := split(contentEncoding)
	if err != nil {
		return nil, err
	}
	out := &reader{Reader: r}
	for i := len(names) - 1; i >= 0; i-- {
		if err := out.push(names[i]); err != nil {
			out.Close()
			return nil, err
		}
	}
	return out, nil
}

func split(contentEncoding []string) ([]string, error) {
	var names []string
	for _, line := range contentEncoding {
		for name := range strings.SplitSeq(line, ",") {
			name = strings.ToLower(strings.TrimSpace(name))
			if name == "" || name == "identity" {
				continue
			}
			if names = append(names, name); len(names) > maxCodings {
				return nil, fmt.Errorf("%w: more than %d on top of each other", ErrUnknown, maxCodings)
			}
		}
	}
	return names, nil
}

// reader is the innermost content, with the decoders to close.
type reader struct {
	io.Reader
	closers []func()
}

func (r *reader) push(name string) error {
	below := bufio.NewReader(r.Reader)
	var open func() (io.Reader, error)
	switch name {
	case "gzip", "x-gzip":
		open = func() (io.Reader, error) { return gzip.NewReader(below) }
	case "deflate":
		open = func() (io.Reader, error) { return inflate(below) }
	case "br":
		open = func() (io.Reader, error) { return brotli.NewReader(below), nil }
	case "zstd":
		open = func() (io.Reader, error) { return r.unzstd(below) }
	default:
		return fmt.Errorf("%w %q", ErrUnknown, name)
	}
	r.Reader = &lazy{below: below, open: open}
	return nil
}

// unzstd decodes in the caller's goroutine and with little memory: the
// asynchronous mode reads ahead.
func (r *reader) unzstd(below io.Reader) (io.Reader, error) {
	d, err := zstd.NewReader(below, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
	if err == nil {
		r.closers = append(r.closers, d.Close)
	}
	return d, err
}

// Close frees the decoders. It never fails.
func (r *reader) Close() error {
	for _, c := range r.closers {
		c()
	}
	return nil
}

// lazy opens a decoder at the first Read, since some read their header when
// they are made, and a caller may want to set a deadline first.
type lazy struct {
	below *bufio.Reader
	open  func() (io.Reader, error)
	r     io.Reader
	err   error
}

func (l *lazy) Read(p []byte) (int, error) {
	if l.r == nil && l.err == nil {
		l.r, l.err = l.start()
	}
	if l.err != nil {
		return 0, l.err
	}
	return l.r.Read(p)
}

func (l *lazy) start() (io.Reader, error) {
	// No bytes are no content in every coding: servers name one for an empty
	// body, too, and for a 204.
	if _, err := l.below.Peek(1); err != nil {
		return nil, err
	}
	r, err := l.open()
	if err == io.EOF {
		err = io.ErrUnexpectedEOF // not even a whole header
	}
	return r, err
}

// inflate reads "deflate", which is zlib by the standard and raw deflate by a
// habit of old servers (RFC 9110, 8.4.1.2).
func inflate(b *bufio.Reader) (io.Reader, error) {
	head, err := b.Peek(2)
	if err != nil {
		return nil, err
	}
	if head[0]&0x0f == 8 && (uint(head[0])<<8|uint(head[1]))%31 == 0 {
		return zlib.NewReader(b)
	}
	return flate.NewReader(b), nil
}
