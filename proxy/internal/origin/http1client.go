package origin

import (
	"bufio"
	"container/list"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"os"
	"sync/atomic"
	"time"

	"robotsgate/proxy/internal/memory"
	"robotsgate/proxy/internal/netconn"
)

// An http1Conn is a connection to an origin. It carries one request at a time, in the
// goroutine of who asks.
type http1Conn struct {
	key      originKey
	conn     net.Conn
	socket   netconn.Socket
	reader   *bufio.Reader       // of the http1Conn
	left     int64               // bytes that may still be read of a head
	head     headSize            // of what has been read of it
	memory   *memory.Reservation // for it; nil: unlimited
	heard    bool                // something of an answer has been read
	timedOut bool                // the last read took too long
	abort    func()              // closes it

	// These are idleConns'.
	since     time.Time     // when it was kept
	place     *list.Element // nil: it is not kept
	inspected bool          // it is looked at just now
}

func newHTTP1Conn(key originKey, conn net.Conn) *http1Conn {
	c := &http1Conn{key: key, conn: conn, abort: func() { closeAtOnce(conn) }}
	c.reader = bufio.NewReader(c)
	c.socket.Init(conn)
	return c
}

var errLongHead = fmt.Errorf("the head of the origin's answer is longer than %d bytes or %d lines", maxResponseHeader, maxHeadLines)

// Read is the reader's.
func (c *http1Conn) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, errLongHead
	}
	n, err := c.conn.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	c.heard = c.heard || n > 0
	c.timedOut = errors.Is(err, os.ErrDeadlineExceeded)
	if !c.head.over {
		c.head.add(p[:n])
		if herr := c.head.pay(c.memory); herr != nil {
			return 0, herr
		}
	}
	return n, err
}

// mayRepeat reports whether a request may be sent again after it may have been received:
// one that is safe (RFC 9110, 9.2.1). Of those that are merely idempotent, as PUT is, the
// client itself knows better.
func mayRepeat(r *http.Request) bool {
	switch r.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return false
}

// afterFunc is [context.AfterFunc], which would make a channel before it finds that the context has a method for this.
func afterFunc(ctx context.Context, do func()) (stop func() bool) {
	if c, ok := ctx.(interface{ AfterFunc(func()) func() bool }); ok {
		return c.AfterFunc(do)
	}
	return context.AfterFunc(ctx, do)
}

// An http1Client sends requests over http1Conns: those without a body, which are nearly all.
//
// Transport hands such a request from the goroutine that asks to one that writes, and its
// answer from one that reads: that is a fifth of what a request costs, and none of it is
// needed where all that is to be written is written before anything is read. Requests with
// a body, HTTP/2, and what goes through a parent or is limited by host are Transport's.
type http1Client struct {
	idleConns
	connect func(ctx context.Context, key originKey) (net.Conn, error)
	next    http.RoundTripper // for all other requests
	answer  time.Duration     // for the head of an answer
	total   time.Duration     // for that, attempts and all

	speakHTTP2 hostSet // those whose connections are not for it
}

// carries reports whether a request is one for the http1Client, as far as is known.
func (t *http1Client) canSend(r *http.Request) bool {
	return (r.Body == nil || r.Body == http.NoBody) && r.ContentLength == 0 && len(r.Header["Upgrade"]) == 0 &&
		(r.URL.Scheme == "http" || !t.speakHTTP2.has(r.URL.Host))
}

// RoundTrip sends a request, if it is one for the http1Client, and returns its answer. The context ends both, until
// the answer's body has been read or closed.
func (t *http1Client) RoundTrip(req *http.Request) (*http.Response, error) {
	if !t.canSend(req) {
		return t.next.RoundTrip(req)
	}
	resp, err := t.send(req)
	if other, ok := err.(*speaksHTTP2); ok {
		defer other.closeUnused()
		return t.next.RoundTrip(other.handOver(req))
	}
	return resp, err
}

func (t *http1Client) send(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	buf := requestHeads.Get().(*[]byte)
	defer requestHeads.Put(buf)
	head, err := appendRequestHead((*buf)[:0], req)
	if err != nil {
		return nil, err
	}
	if cap(head) <= maxPooledRequestHead {
		*buf = head
	}
	key := originKey{req.URL.Scheme == "https", req.URL.Host}
	by := time.Now().Add(t.total)
	c := t.take(key)
	if c != nil {
		resp, err := t.exchange(ctx, c, req, head, by)
		// The origin may have closed it just when the request was sent.
		if err == nil || c.heard || errors.Is(err, os.ErrDeadlineExceeded) || ctx.Err() != nil || !mayRepeat(req) {
			return resp, err
		}
	}
	conn, err := t.connect(ctx, key)
	if err != nil {
		return nil, err
	}
	return t.exchange(ctx, newHTTP1Conn(key, conn), req, head, by)
}

func (t *http1Client) exchange(ctx context.Context, c *http1Conn, req *http.Request, head []byte, by time.Time) (*http.Response, error) {
	c.memory = memory.FromContext(ctx)
	stop := afterFunc(ctx, c.abort)
	resp, err := c.ask(req, head, by, t.answer)
	if err != nil {
		stop()
		closeAtOnce(c.conn)
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return nil, err
	}
	body := &http1Body{ReadCloser: resp.Body, client: t, c: c, stop: stop, left: resp.ContentLength}
	// What is switched to another protocol is not a connection of HTTP any more, and of
	// what is no status nobody knows.
	body.again = !resp.Close && resp.StatusCode >= 200
	if resp.Body == http.NoBody {
		body.end(body.again)
		return resp, nil
	}
	resp.Body = body
	return resp, nil
}

// ask sends a request, which is all in its head, and reads the head of its answer.
func (c *http1Conn) ask(req *http.Request, head []byte, by time.Time, patience time.Duration) (*http.Response, error) {
	c.heard, c.left, c.head = false, maxResponseHeader, headSize{}
	if at := time.Now().Add(patience); at.Before(by) {
		by = at
	}
	if err := c.conn.SetDeadline(by); err != nil {
		return nil, err
	}
	if _, err := c.conn.Write(head); err != nil {
		return nil, err
	}
	for {
		resp, err := http.ReadResponse(c.reader, req)
		switch {
		// ReadResponse tells of a line that is cut short before it tells of what cut it.
		case err != nil && c.left <= 0:
			return nil, errLongHead
		case err != nil && c.head.err != nil:
			return nil, c.head.err
		case err != nil && c.timedOut:
			return nil, errNoAnswer
		case err != nil:
			return nil, err
		case resp.StatusCode/100 != 1 || resp.StatusCode == http.StatusSwitchingProtocols:
			c.left, c.head.over = math.MaxInt64, true
			return resp, c.conn.SetDeadline(time.Time{})
		}
		c.head.over = false // another follows
		if trace := httptrace.ContextClientTrace(req.Context()); trace != nil && trace.Got1xxResponse != nil {
			c.left = maxResponseHeader // for each, as Transport has it: the hook bounds their number
			if err := trace.Got1xxResponse(resp.StatusCode, textproto.MIMEHeader(resp.Header)); err != nil {
				return nil, err
			}
		}
	}
}

// An http1Body is an answer's body. Its connection can be used again when it has come
// to its end; closed before, it takes the connection with it.
type http1Body struct {
	io.ReadCloser // that of net/http, whose Close would read all the rest
	client        *http1Client
	c             *http1Conn
	stop          func() bool // of the context's end
	again         bool        // the connection may be used again
	left          int64       // bytes to come; negative: that is not known
	ended         atomic.Bool
}

func (b *http1Body) Read(p []byte) (int, error) {
	if b.left >= 0 {
		return b.readKnown(p)
	}
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.end(b.again && err == io.EOF)
	}
	return n, err
}

// readKnown reads a body of known length, what is not in the reader yet straight from the
// connection.
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
		b.end(b.again)
		return n, io.EOF
	case err == io.EOF:
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		b.end(false)
	}
	return n, err
}

// AtHand reports whether some of the body can be read at once.
func (b *http1Body) AtHand() bool { return b.left > 0 && b.c.reader.Buffered() > 0 }

// Peek returns what of the body is at hand, until the next Read, and whether that is all
// of it.
func (b *http1Body) Peek() (beginning []byte, whole bool) {
	if b.left <= 0 {
		return nil, false
	}
	n := min(int64(b.c.reader.Buffered()), b.left)
	beginning, _ = b.c.reader.Peek(int(n)) // which it has
	return beginning, n == b.left
}

// ReadArrived reads behind what was at hand what else has come, and does not wait.
func (b *http1Body) ReadArrived(p []byte) (n int, err error) {
	c := b.c
	if b.left <= 0 || c.key.secure || c.reader.Buffered() > 0 {
		return 0, nil
	}
	n = c.socket.ReadNow(p[:min(int64(len(p)), b.left)])
	if b.left -= int64(n); b.left == 0 {
		b.end(b.again)
		return n, io.EOF
	}
	return n, nil
}

// Close may come at any time, also while Read waits.
func (b *http1Body) Close() error {
	b.end(false)
	return nil
}

func (b *http1Body) end(again bool) {
	if !b.ended.CompareAndSwap(false, true) {
		return
	}
	// Once stop fails the context has ended, and closes the connection.
	if !b.stop() || !again || b.c.reader.Buffered() > 0 {
		closeAtOnce(b.c.conn)
		return
	}
	b.client.keep(b.c)
}
