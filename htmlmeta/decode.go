package htmlmeta

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// maxCodings bounds how many content codings may be stacked. More than one is
// a mistake of the server's already; each costs a decoder.
const maxCodings = 3

// maxWindow is how far back a zstd stream may refer: what RFC 9659 grants an
// HTTP content coding.
const maxWindow = 8 << 20

// decode returns a reader of the body whose Content-Encoding is given, and
// what to call when done with it. It reports false for a coding it doesn't
// know. Nothing is read from r yet.
func decode(r io.Reader, contentEncoding string) (body io.Reader, release func(), ok bool) {
	var codings []string
	for c := range strings.SplitSeq(contentEncoding, ",") {
		c = strings.ToLower(strings.TrimSpace(c))
		if c != "" && c != "identity" {
			codings = append(codings, c)
		}
	}
	if len(codings) == 0 {
		return r, func() {}, true
	}
	if len(codings) > maxCodings {
		return nil, nil, false
	}
	var decoders []*decoder
	release = func() {
		for _, d := range decoders {
			d.in.Reset(nil) // let go of the body
			d.pool.Put(d)
		}
	}
	// They are listed in the order in which they were applied (RFC 9110,
	// section 8.4).
	for i := len(codings) - 1; i >= 0; i-- {
		pool := decoderPools[codings[i]]
		if pool == nil {
			release()
			return nil, nil, false
		}
		d := pool.Get().(*decoder)
		d.begin(r)
		decoders = append(decoders, d)
		r = d
	}
	return r, release, true
}

// A decoder undoes one content coding. Its tables and windows are worth keeping
// for the next body: making them costs more than most heads.
type decoder struct {
	pool  *sync.Pool
	in    *bufio.Reader
	open  func(*decoder) (io.Reader, error)
	state io.Reader // what open keeps for the next time
	out   io.Reader
	any   bool // out has given something
	err   error
}

func (d *decoder) begin(r io.Reader) {
	// Small, so that little is read beyond the head; bufio returns what one
	// read brings and doesn't wait to be full.
	if d.in == nil {
		d.in = bufio.NewReaderSize(r, 4<<10)
	} else {
		d.in.Reset(r)
	}
	d.out, d.any, d.err = nil, false, nil
}

func (d *decoder) Read(p []byte) (int, error) {
	if d.err != nil {
		return 0, d.err
	}
	// Opened here and not in begin, since it reads the stream's header.
	if d.out == nil {
		// No bytes are an empty page in every coding.
		if _, d.err = d.in.Peek(1); d.err != nil {
			return 0, d.err
		}
		if d.out, d.err = d.open(d); d.err != nil {
			return 0, d.err
		}
	}
	n, err := d.out.Read(p)
	d.any = d.any || n > 0
	if d.any && (errors.Is(err, gzip.ErrHeader) || errors.Is(err, zstd.ErrMagicMismatch)) {
		// What follows a whole stream and isn't another one is padding, which
		// browsers ignore.
		err = io.EOF
	}
	d.err = err
	return n, err
}

var decoderPools = map[string]*sync.Pool{
	"gzip":    gzipPool,
	"x-gzip":  gzipPool, // RFC 9110, section 8.4.1.3
	"deflate": newPool(openDeflate),
	"br":      newPool(openBrotli),
	"zstd":    newPool(openZstd),
}

var gzipPool = newPool(openGzip)

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
// section 8.4.1.2), and the raw ones that some servers send instead.
func openDeflate(d *decoder) (io.Reader, error) {
	head, err := d.in.Peek(2)
	if err != nil {
		return nil, err
	}
	if head[0]&0x0f == 8 && (int(head[0])<<8|int(head[1]))%31 == 0 {
		if head[1]&0x20 != 0 {
			return nil, errors.New("zlib: preset dictionary")
		}
		d.in.Discard(2)
	}
	// The checksum at the end is left unread: it protects nothing here.
	if z, ok := d.state.(io.Reader); ok {
		return z, z.(flate.Resetter).Reset(d.in, nil)
	}
	d.state = flate.NewReader(d.in)
	return d.state, nil
}

func openBrotli(d *decoder) (io.Reader, error) {
	if z, ok := d.state.(*brotli.Reader); ok {
		return z, z.Reset(d.in)
	}
	d.state = brotli.NewReader(d.in)
	return d.state, nil
}

func openZstd(d *decoder) (io.Reader, error) {
	if z, ok := d.state.(*zstd.Decoder); ok {
		return z, z.Reset(d.in)
	}
	// With one worker it decodes in the reading goroutine, a block at a time,
	// and needs no Close.
	z, err := zstd.NewReader(d.in, zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return nil, err
	}
	d.state = z
	return z, nil
}
