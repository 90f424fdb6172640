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
	open  func(*decoder) (io.Reader, error)
	state io.Reader // kept by open for the next body
	raw   io.Reader // the same, for deflate without zlib's frame
	out   io.Reader // decodes in
	any   bool      // out has returned some bytes
	err   error
}

func (d *decoder) begin(r io.Reader) {
	// The buffer is small, so that little is read ahead.
	if d.in == nil {
		d.in = bufio.NewReaderSize(r, 4<<10)
	} else {
		d.in.Reset(r)
	}
	d.out, d.any, d.err = nil, false, nil
}

// end returns the decoder to its pool.
func (d *decoder) end() {
	d.in.Reset(nil)
	d.pool.Put(d)
}

func (d *decoder) Read(p []byte) (int, error) {
	if d.out == nil && d.err == nil {
		d.out, d.err = d.start()
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
func (d *decoder) start() (io.Reader, error) {
	// An empty body is empty in every coding: servers name a coding also for a
	// 204.
	if _, err := d.in.Peek(1); err != nil {
		return nil, err
	}
	out, err := d.open(d)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF // not even a whole header
	}
	return out, err
}

// pools has the known codings.
var pools = map[string]*sync.Pool{
	"gzip":    gzips,
	"x-gzip":  gzips, // RFC 9110, 8.4.1.3
	"deflate": newPool(openDeflate),
	"br":      newPool(openBrotli),
	"zstd":    newPool(openZstd),
}

var gzips = newPool(openGzip)

func newPool(open func(*decoder) (io.Reader, error)) *sync.Pool {
	p := new(sync.Pool)
	p.New = func() any { return &decoder{pool: p, open: open} }
	return p
}

func openGzip(d *decoder) (io.Reader, error) {
	if z, ok := d.state.(*gzip.Reader); ok {
		return z, z.Reset(d.in)
	}
	z, err := gzip.NewReader(d.in)
	if err != nil {
		return nil, err
	}
	d.state = z
	return z, nil
}

// openDeflate reads zlib streams (RFC 9110, 8.4.1.2), and the raw deflate streams
// that some servers send instead.
func openDeflate(d *decoder) (io.Reader, error) {
	head, err := d.in.Peek(2)
	if err != nil {
		return nil, err
	}
	if head[0]&0x0f != 8 || (uint(head[0])<<8|uint(head[1]))%31 != 0 {
		if d.raw != nil {
			return d.raw, d.raw.(flate.Resetter).Reset(d.in, nil)
		}
		d.raw = flate.NewReader(d.in)
		return d.raw, nil
	}
	if d.state != nil {
		return d.state, d.state.(zlib.Resetter).Reset(d.in, nil)
	}
	z, err := zlib.NewReader(d.in)
	if err != nil {
		return nil, err
	}
	d.state = z
	return z, nil
}

func openBrotli(d *decoder) (io.Reader, error) {
	if z, ok := d.state.(*brotli.Reader); ok {
		return z, z.Reset(d.in)
	}
	z := brotli.NewReader(d.in)
	d.state = z
	return z, nil
}

func openZstd(d *decoder) (io.Reader, error) {
	if z, ok := d.state.(*zstd.Decoder); ok {
		return z, z.Reset(d.in)
	}
	// With one worker it decodes one block at a time in the reading goroutine,
	// does not read ahead, and needs no Close.
	z, err := zstd.NewReader(d.in, zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return nil, err
	}
	d.state = z
	return z, nil
}
