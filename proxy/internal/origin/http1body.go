package origin

import (
	"io"
	"sync/atomic"
)

// An http1Body is the body of a response. When it has been read to its end the connection becomes idle; if it is
// closed before, the connection is closed.
type http1Body struct {
	io.ReadCloser // from ReadResponse; its Close would read all the rest
	client        *http1Client
	c             *http1Conn
	reusable      bool  // the connection may be used again
	left          int64 // bytes not read yet; negative: unknown
	ended         atomic.Bool
}

func (b *http1Body) Read(p []byte) (int, error) {
	if b.left >= 0 {
		return b.readKnown(p)
	}
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.end(b.reusable && err == io.EOF)
	}
	return n, err
}

// readKnown reads a body of known length: what is not buffered straight from the connection.
func (b *http1Body) readKnown(p []byte) (n int, err error) {
	p = p[:min(int64(len(p)), b.left)]
	switch {
	case len(p) == 0:
	case b.c.reader.Buffered() > 0:
		n, err = b.c.reader.Read(p)
	default:
		n, err = b.c.Read(p)
	}
	b.left -= int64(n)
	switch {
	case b.left == 0:
		b.end(b.reusable)
		return n, io.EOF
	case err == io.EOF:
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		b.end(false)
	}
	return n, err
}

// AtHand reports whether Read would return some of the body without waiting.
func (b *http1Body) AtHand() bool { return b.left > 0 && b.c.reader.Buffered() > 0 }

// Peek returns what is buffered of the body, valid until the next Read, and whether that is all that is left of it.
func (b *http1Body) Peek() (beginning []byte, whole bool) {
	if b.left <= 0 {
		return nil, false
	}
	n := min(int64(b.c.reader.Buffered()), b.left)
	beginning, _ = b.c.reader.Peek(int(n)) // no error: so much is buffered
	return beginning, n == b.left
}

// ReadArrived reads what has arrived behind the buffered part, without waiting.
func (b *http1Body) ReadArrived(p []byte) (n int, err error) {
	c := b.c
	if b.left <= 0 || c.key.secure || c.reader.Buffered() > 0 {
		return 0, nil
	}
	n = c.socket.ReadNow(p[:min(int64(len(p)), b.left)])
	if b.left -= int64(n); b.left == 0 {
		b.end(b.reusable)
		return n, io.EOF
	}
	return n, nil
}

// Close may be called at any time, also while Read waits.
func (b *http1Body) Close() error {
	b.end(false)
	return nil
}

func (b *http1Body) end(reusable bool) {
	if !b.ended.CompareAndSwap(false, true) {
		return
	}
	// If unwatch fails the context has ended, and closes the connection. Close, which may be called
	// while Read calls watch, gets no further than to reusable.
	if !reusable || b.c.reader.Buffered() > 0 || !b.c.unwatch() {
		closeAtOnce(b.c.conn)
		return
	}
	b.c.returnReader()
	b.c.ctx = nil // an idle connection must not keep a request in memory
	b.client.put(b.c)
}
