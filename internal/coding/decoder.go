package coding

import (
	"bufio"
	"errors"
	"io"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

// A decoder decodes one content coding. Decoders are reused: making their tables
// and windows costs more than decoding most bodies.
type decoder struct {
	pool  *sync.Pool
	in    *bufio.Reader
	out   resetter // decodes in
	begun bool     // out has read the stream's header
	any   bool     // out has returned some bytes
	err   error
}

// A resetter decodes the input of its last Reset, which reads the stream's header.
type resetter interface {
	io.Reader
	Reset(io.Reader) error
}

func (d *decoder) begin(r io.Reader) {
	d.in.Reset(r)
	d.begun, d.any, d.err = false, false, nil
}

// end returns the decoder to its pool.
func (d *decoder) end() {
	d.in.Reset(nil)
	d.pool.Put(d)
}

func (d *decoder) Read(p []byte) (int, error) {
	if !d.begun {
		d.begun, d.err = true, d.start()
	}
	if d.err != nil {
		return 0, d.err
	}
	n, err := d.out.Read(p)
	d.any = d.any || n > 0
	if d.any && (errors.Is(err, gzip.ErrHeader) || errors.Is(err, zstd.ErrMagicMismatch) || isExcess(err)) {
		// Bytes after a whole stream that do not begin another are padding,
		// which browsers ignore.
		err = io.EOF
	}
	d.err = err
	return n, err
}

// isExcess reports whether err means that bytes follow the stream. Package brotli
// does not export this error. It returns it also when the last bytes of the stream
// come one by one.
func isExcess(err error) bool { return err != nil && err.Error() == "brotli: excessive input" }

// start reads the stream's header, at the first Read: callers may set a deadline
// after NewReader.
func (d *decoder) start() error {
	// An empty body is empty in every coding: servers name a coding also for a
	// 204.
	if _, err := d.in.Peek(1); err != nil {
		return err
	}
	err := d.out.Reset(d.in)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF // not even a whole header
	}
	return err
}

// pools has the known codings.
var pools = map[string]*sync.Pool{
	"gzip":    gzips,
	"x-gzip":  gzips, // RFC 9110, 8.4.1.3
	"deflate": newPool(func() resetter { return new(deflate) }),
	"br":      newPool(func() resetter { return new(brotli.Reader) }),
	"zstd":    newPool(newZstd),
}

var gzips = newPool(func() resetter { return new(members) })

// members reads the members of a gzip stream (RFC 1952, 2.2). Bytes behind the last one that do not begin another are
// ignored, however few they are, also behind an empty one.
type members struct {
	gzip.Reader
	in *bufio.Reader
}

func (m *members) Reset(r io.Reader) error {
	m.in = r.(*bufio.Reader)
	err := m.Reader.Reset(r)
	m.Multistream(false)
	return err
}

func (m *members) Read(p []byte) (n int, err error) {
	for n == 0 && err == nil {
		if n, err = m.Reader.Read(p); err != io.EOF {
			continue
		}
		head, failed := m.in.Peek(2)
		switch {
		case string(head) == "\x1f\x8b":
			err = m.Reset(m.in)
		case failed != nil:
			err = failed
		}
	}
	return n, err
}

func newPool(newOut func() resetter) *sync.Pool {
	p := new(sync.Pool)
	// The buffer is small, so that little is read ahead.
	p.New = func() any { return &decoder{pool: p, in: bufio.NewReaderSize(nil, 4<<10), out: newOut()} }
	return p
}

// deflate reads zlib streams (RFC 9110, 8.4.1.2), and the raw deflate streams that
// some servers send instead.
type deflate struct {
	io.Reader               // zlib or raw
	zlib, raw io.ReadCloser // nil until they are needed
}

func (d *deflate) Reset(r io.Reader) error {
	head, err := r.(*bufio.Reader).Peek(2)
	switch {
	case err != nil:
		return err
	case head[0]&0x0f != 8 || (uint(head[0])<<8|uint(head[1]))%31 != 0:
		if d.raw == nil {
			d.raw = flate.NewReader(r)
		}
		d.Reader, err = d.raw, d.raw.(flate.Resetter).Reset(r, nil)
	case d.zlib == nil:
		d.zlib, err = zlib.NewReader(r)
		d.Reader = d.zlib
	default:
		d.Reader, err = d.zlib, d.zlib.(zlib.Resetter).Reset(r, nil)
	}
	return err
}

// newZstd returns a decoder with one worker: it decodes one block at a time in the
// reading goroutine, does not read ahead, and needs no Close.
func newZstd() resetter {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		panic(err) // an option is wrong
	}
	return z
}
