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
	"slices"
	"strings"
	"sync"
)

const (
	maxCodings = 3       // in a row
	maxWindow  = 8 << 20 // bytes of zstd history, the bound of RFC 8878, 3.1.1.1.2
)

// noCodings are the names that stand for no coding: that of RFC 9110, 12.5.3, and those of charsets and of MIME.
var noCodings = []string{"", "identity", "none", "utf-8", "8bit", "binary"}

// errUnknown means that NewReader cannot decode a coding.
var errUnknown = errors.New("unknown content coding")

// NewReader decodes r. The codings are the values of the Content-Encoding header
// fields, in the order in which they were applied. Names that servers write without having applied a coding, such as
// "none" and "utf-8", are passed over. Read returns what can be decoded
// of the input so far, without waiting for more. Close frees the decoders and leaves
// r open.
func NewReader(r io.Reader, contentEncoding []string) (io.ReadCloser, error) {
	var applied []*sync.Pool
	for _, line := range contentEncoding {
		for name := range strings.SplitSeq(line, ",") {
			name = strings.ToLower(strings.TrimSpace(name))
			switch pool := pools[name]; {
			case slices.Contains(noCodings, name):
			case pool == nil:
				return nil, fmt.Errorf("%w %q", errUnknown, name)
			case len(applied) == maxCodings:
				return nil, fmt.Errorf("%w: more than %d on top of each other", errUnknown, maxCodings)
			default:
				applied = append(applied, pool)
			}
		}
	}
	out := &reader{Reader: r}
	for _, pool := range slices.Backward(applied) {
		d := pool.Get().(*decoder)
		d.begin(out.Reader)
		out.decoders = append(out.decoders, d)
		out.Reader = d
	}
	return out, nil
}

// A reader reads from the last of its decoders.
type reader struct {
	io.Reader
	decoders []*decoder
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
