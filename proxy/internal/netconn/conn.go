// Package netconn has the connections of clients and origins: with cheap deadlines, with writes that are put together, and
// with reads that do not wait.
package netconn

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// An Conn is a connection whose deadlines are cheap to set and to lift: that is done
// for every request and every answer, and hardly ever is one needed. The timers underneath
// are moved only if they would come too late. One that comes too early is put off,
// unnoticed by who reads or writes.
type Conn struct {
	net.Conn
	read, write deadline
	joint       joint
	atHand      *Socket // a Read finds what that has, and does not wait: for who looks what TLS has; nil: it waits
}

// ErrWouldBlock is a Read's that must not wait. TLS goes on after an error that is temporary.
var ErrWouldBlock net.Error = dryError{}

type dryError struct{}

func (dryError) Error() string   { return "nothing is read now" }
func (dryError) Timeout() bool   { return true }
func (dryError) Temporary() bool { return true }

func New(conn net.Conn) *Conn {
	return &Conn{Conn: conn, read: deadline{move: conn.SetReadDeadline}, write: deadline{move: conn.SetWriteDeadline}}
}

// A deadline is that of one direction.
type deadline struct {
	move func(time.Time) error // the timer

	mu    sync.Mutex
	until time.Time // zero: none
	timer time.Time // when the timer ends what is going on: no later than until; zero: never
	spent bool      // that was past when it was set, as net/http does to end a Read
}

// set breaks off what is going on as [net.Conn] says.
func (d *deadline) set(t time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.until = t
	if t.IsZero() || !d.timer.IsZero() && !t.Before(d.timer) {
		return nil
	}
	d.timer, d.spent = t, !t.After(time.Now())
	return d.move(t)
}

// renew comes before a Read, which a timer that is past would only fail: early would put it
// off too, at the cost of an error. A Write hardly ever meets one, and leaves it to early.
func (d *deadline) renew() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.spent {
		_ = d.putOff() // else the Read tells
	}
}

// putOff moves a timer that came too early. The caller holds the lock.
func (d *deadline) putOff() bool {
	if !d.until.IsZero() && !time.Now().Before(d.until) {
		return false
	}
	d.timer, d.spent = d.until, false
	return d.move(d.until) == nil
}

// early reports whether an error is that of a timer that came too early, and puts it off.
func (d *deadline) early(err error) bool {
	if err == nil || !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.putOff()
}

func (c *Conn) SetReadDeadline(t time.Time) error  { return c.read.set(t) }
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.write.set(t) }

func (c *Conn) SetDeadline(t time.Time) error {
	return errors.Join(c.read.set(t), c.write.set(t))
}

func (c *Conn) Read(p []byte) (int, error) {
	if c.atHand != nil {
		if n := c.atHand.ReadNow(p); n > 0 {
			return n, nil
		}
		return 0, ErrWouldBlock
	}
	c.read.renew()
	for {
		n, err := c.Conn.Read(p)
		if n > 0 || !c.read.early(err) {
			return n, err
		}
	}
}

func (c *Conn) writeOne(p []byte) (written int, err error) {
	for {
		n, err := c.Conn.Write(p[written:])
		written += n
		if !c.write.early(err) {
			return written, err
		}
	}
}

// writeAll writes the pieces, and takes what was written from them.
func (c *Conn) writeAll(pieces net.Buffers) (written int, err error) {
	for {
		n, err := pieces.WriteTo(c.Conn)
		written += int(n)
		if !c.write.early(err) {
			return written, err
		}
	}
}

func (c *Conn) CloseWrite() error { return CloseWrite(c.Conn) }

// NetConn is for who looks at the descriptor.
func (c *Conn) NetConn() net.Conn { return c.Conn }

// SetLinger is for who resets the connection.
func (c *Conn) SetLinger(sec int) error {
	if tcp, ok := c.Conn.(interface{ SetLinger(sec int) error }); ok {
		return tcp.SetLinger(sec)
	}
	return errors.ErrUnsupported
}

// SetNonBlocking makes Read return what s has, or [ErrWouldBlock] if that is nothing, until it
// is called with nil.
func (c *Conn) SetNonBlocking(s *Socket) { c.atHand = s }
