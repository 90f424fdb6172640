// Package coding undoes the content codings of HTTP messages (RFC 9110, 8.4.1):
// gzip, deflate, br and zstd, also several on top of each other.
//
// It is meant for input that nobody vouches for: memory is bounded by fixed
// windows, and what comes out is as large as the caller lets it be.
package coding

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
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

// reader is the innermost content, with the decoders to give back.
type reader struct {
	io.Reader
	decoders []*decoder
}

func (r *reader) push(name string) error {
	pool := pools[name]
	if pool == nil {
		return fmt.Errorf("%w %q", ErrUnknown, name)
	}
	d := pool.Get().(*decoder)
	d.begin(r.Reader)
	r.decoders = append(r.decoders, d)
	r.Reader = d
	return nil
}

// Close frees the decoders, after which there is nothing more to read. It never
// fails.
func (r *reader) Close() error {
	for _, d := range r.decoders {
		d.end()
	}
	r.Reader, r.decoders = closed{}, nil
	return nil
}

type closed struct{}

func (closed) Read([]byte) (int, error) { return 0, fs.ErrClosed }
