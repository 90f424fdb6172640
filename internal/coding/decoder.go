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

// A decoder undoes one content coding. Its tables and windows are worth keeping
// for the next body: making them costs more than decoding most of them.
type decoder struct {
	pool  *sync.Pool
	in    *bufio.Reader
	open  func(*decoder) (io.Reader, error)
	state io.Reader // what open keeps for the next time
	raw   io.Reader // the same, of deflate without zlib's frame
	out   io.Reader
	any   bool // out has given something
	err   error
}

func (d *decoder) begin(r io.Reader) {
	// Small, so that little is read beyond what is asked for; bufio returns what
	// one read brings and doesn't wait to be full.
	if d.in == nil {
		d.in = bufio.NewReaderSize(r, 4<<10)
	} else {
		d.in.Reset(r)
	}
	d.out, d.any, d.err = nil, false, nil
}

// end lets go of the body and gives the decoder back.
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
		// What follows a whole stream and isn't another one is padding, which
		// browsers ignore.
		err = io.EOF
	}
	d.err = err
	return n, err
}

// isExcess reports whether package brotli says of an error, which it does not export,
// that something follows the stream. It says so of a stream's own last bytes too, if
// they come one by one.
func isExcess(err error) bool { return err != nil && err.Error() == "brotli: excessive input" }

// start reads the stream's header. It waits for the first Read, since a caller
// may want to set a deadline before.
func (d *decoder) start() (io.Reader, error) {
	// No bytes are no content in every coding: servers name one for an empty
	// body, too, and for a 204.
	if _, err := d.in.Peek(1); err != nil {
		return nil, err
	}
	out, err := d.open(d)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF // not even a whole header
	}
	return out, err
}

// pools are the codings that are known.
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

// openDeflate reads zlib streams, which is what the coding is (RFC 9110,
// 8.4.1.2), and the raw ones that some servers send instead.
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
	// With one worker it decodes in the reading goroutine, a block at a time,
	// reads nothing ahead, and needs no Close.
	z, err := zstd.NewReader(d.in, zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return nil, err
	}
	d.state = z
	return z, nil
}
