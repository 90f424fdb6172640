package origin

import (
	"bufio"
	"container/list"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"os"
	"sync"
	"time"

	"robotsgate/policy/snapshot"
	"robotsgate/proxy/internal/netconn"
)

// An originKey names an origin.
type originKey struct {
	secure bool
	host   string // with the port, as in the URL
}

// An http1Conn is a connection to an origin. It carries one request at a time.
type http1Conn struct {
	key      originKey
	conn     net.Conn
	socket   netconn.Socket // of conn
	reader   *bufio.Reader  // of the http1Conn; nil: the connection is idle
	left     int64          // bytes that may still be read of the head
	head     headSize       // of what has been read of the head
	timedOut bool           // the last Read met the deadline

	ctx      context.Context // of the request; nil: the connection is idle
	deadline time.Time       // for the head of the response
	abort    func()          // closes conn
	watching func() bool     // stops the call of abort when ctx ends; nil: there is none

	responded bool // something of the response has been read

	// Guarded by idleConns.mu.
	idleSince time.Time
	place     *list.Element // nil: the connection is not idle
}

func newHTTP1Conn(key originKey, conn net.Conn) *http1Conn {
	c := &http1Conn{key: key, conn: conn, abort: func() { closeAtOnce(conn) }}
	c.socket.Init(conn)
	return c
}

// readers are the buffers of connections that are not idle. Most heads arrive together with a
// compressed page, and one read returns both.
var readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 16<<10) }}

// takeReader gives the connection an empty buffer.
func (c *http1Conn) takeReader() {
	c.reader = readers.Get().(*bufio.Reader)
	c.reader.Reset(c)
}

// returnReader takes the buffer back, which must be empty and not in use.
func (c *http1Conn) returnReader() {
	c.reader.Reset(nil)
	readers.Put(c.reader)
	c.reader = nil
}

var errLongHead = &snapshot.AnswerError{Fault: sizeFault, Why: fmt.Sprintf("its head is longer than %d bytes or %d lines", maxResponseHeader, maxHeadLines)}

// Read is what reader reads from.
func (c *http1Conn) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, errLongHead
	}
	p = p[:min(int64(len(p)), c.left)]
	if c.head.ended {
		c.watch()
	}
	n, err := c.conn.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) && c.watch() {
		n, err = c.conn.Read(p)
	}
	c.left -= int64(n)
	c.responded = c.responded || n > 0
	c.timedOut = errors.Is(err, os.ErrDeadlineExceeded)
	if !c.head.ended {
		c.head.add(p[:n])
		if herr := c.head.check(); herr != nil {
			return 0, herr
		}
	}
	return n, err
}

// watchDelay is how long a response is waited for before the end of the request's context closes
// the connection. Most responses have arrived by then, and context.AfterFunc takes six allocations
// and two percent of the time of a small request.
const watchDelay = 100 * time.Millisecond

// watch lets the end of the request's context close the connection. Until then Read waits as long
// as the deadline allows. It returns false if that is so already.
func (c *http1Conn) watch() bool {
	if c.ctx == nil || c.watching != nil {
		return false
	}
	c.watching = context.AfterFunc(c.ctx, c.abort)
	_ = c.conn.SetReadDeadline(c.deadline) // Read returns the error of a closed connection
	return true
}

// unwatch ends watch. It reports whether the connection can be used on.
func (c *http1Conn) unwatch() bool { return c.watching == nil || c.watching() }

// ask writes a request and reads the head of the response.
func (c *http1Conn) ask(req *http.Request, written []byte, deadline time.Time) (*http.Response, error) {
	c.takeReader()
	c.responded, c.left, c.head = false, maxResponseHeader, headSize{}
	c.ctx, c.deadline, c.watching = req.Context(), deadline, nil
	if err := c.conn.SetDeadline(deadline); err != nil {
		return nil, err
	}
	if soon := time.Now().Add(watchDelay); soon.Before(deadline) {
		_ = c.conn.SetReadDeadline(soon) // see Read
	}
	if _, err := c.conn.Write(written); err != nil {
		return nil, err
	}
	for {
		resp, err := http.ReadResponse(c.reader, req)
		switch {
		// ReadResponse reports a line that is cut short rather than the error that cut it.
		case err != nil && c.left <= 0:
			return nil, errLongHead
		case err != nil && c.head.err != nil:
			return nil, c.head.err
		case err != nil && c.timedOut:
			return nil, errNoAnswer
		case err != nil:
			return nil, fmt.Errorf("%s%w", http1Broken, err)
		case resp.StatusCode/100 != 1 || resp.StatusCode == http.StatusSwitchingProtocols:
			c.left, c.head.ended, c.deadline = math.MaxInt64, true, time.Time{}
			return resp, c.conn.SetDeadline(time.Time{})
		}
		c.head.ended = false // another head follows
		if trace := httptrace.ContextClientTrace(req.Context()); trace != nil && trace.Got1xxResponse != nil {
			c.left = maxResponseHeader // for each response, as in Transport: the hook bounds their number
			if err := trace.Got1xxResponse(resp.StatusCode, textproto.MIMEHeader(resp.Header)); err != nil {
				return nil, err
			}
		}
	}
}

// usable reports whether an idle connection can carry another request: the origin has neither closed it nor
// sent anything, which would be taken for the next response.
func (c *http1Conn) usable() bool { return c.socket.Silent() && !c.hasUnread() }

// hasUnread reports whether TLS has received something that has not been read. In clear it would have been in
// reader, and such a connection does not become idle.
func (c *http1Conn) hasUnread() bool {
	if !c.key.secure {
		return false
	}
	under, ok := c.conn.(*tls.Conn).NetConn().(*netconn.Conn)
	if !ok {
		return true // it cannot be told
	}
	under.ReadNothing(true)
	_, err := c.conn.Read(make([]byte, 1))
	under.ReadNothing(false)
	return err != netconn.ErrWouldBlock
}

// closeAtOnce closes a connection without TLS's close_notify, which would wait for an origin that does not read.
func closeAtOnce(conn net.Conn) {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	conn.Close()
}
