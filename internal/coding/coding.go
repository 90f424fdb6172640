// Package coding decodes the content codings of HTTP messages (RFC 9110, 8.4.1):
// gzip, deflate, br and zstd, also several applied in a row.
//
// The input may be hostile. Memory is bounded by fixed windows, and decoding goes
// on only while the caller reads.
package coding

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
)

const (
	maxCodings = 3       // in a row
	maxWindow  = 8 << 20 // bytes of zstd history, the bound of RFC 8878, 3.1.1.1.2
)

// errUnknown means that NewReader cannot decode a coding.
var errUnknown = errors.New("unknown content coding")

// NewReader decodes r. The codings are the values of the Content-Encoding header
// fields, in the order in which they were applied. Read returns what can be decoded
// of the input so far, without waiting for more. Close frees the decoders and leaves
// r open.
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
				return nil, fmt.Errorf("%w: more than %d on top of each other", errUnknown, maxCodings)
			}
		}
	}
	return names, nil
}

// A reader reads from the last of its decoders.
type reader struct {
	io.Reader
	decoders []*decoder
}

func (r *reader) push(name string) error {
	pool := pools[name]
	if pool == nil {
		return fmt.Errorf("%w %q", errUnknown, name)
	}
	d := pool.Get().(*decoder)
	d.begin(r.Reader)
	r.decoders = append(r.decoders, d)
	r.Reader = d
	return nil
}

// Close frees the decoders. Later reads fail, since other readers may have them.
func (r *reader) Close() error {
	for _, d := range r.decoders {
		d.end()
	}
	r.Reader, r.decoders = closed{}, nil
	return nil
}

type closed struct{}

func (closed) Read([]byte) (int, error) { return 0, fs.ErrClosed }
