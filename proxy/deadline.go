package proxy

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// A writeDeadline is a connection whose deadline for writes is cheap to set and to
// lift: net/http does both for every answer, in HTTP/2 for every write, and hardly ever
// is one needed. The timer underneath is moved only if it would come too late. One that
// comes too early is put off, unnoticed by who writes.
type writeDeadline struct {
	net.Conn

	mu    sync.Mutex
	until time.Time // the deadline; zero: none
	timer time.Time // when the timer ends a Write: no later than until; zero: never
}

// SetWriteDeadline breaks off a Write that is going on as [net.Conn] says.
func (d *writeDeadline) SetWriteDeadline(t time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.until = t
	if t.IsZero() || !d.timer.IsZero() && !t.Before(d.timer) {
		return nil
	}
	d.timer = t
	return d.Conn.SetWriteDeadline(t)
}

func (d *writeDeadline) SetDeadline(t time.Time) error {
	if err := d.SetWriteDeadline(t); err != nil {
		return err
	}
	return d.SetReadDeadline(t)
}

func (d *writeDeadline) Write(p []byte) (written int, err error) {
	for {
		n, err := d.Conn.Write(p[written:])
		written += n
		if !errors.Is(err, os.ErrDeadlineExceeded) || !d.putOff() {
			return written, err
		}
	}
}

// putOff reports whether the timer came too early.
func (d *writeDeadline) putOff() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.until.IsZero() && !time.Now().Before(d.until) {
		return false
	}
	d.timer = d.until
	return d.Conn.SetWriteDeadline(d.until) == nil
}

func (d *writeDeadline) CloseWrite() error { return closeWrite(d.Conn) }

// SetLinger is for who resets the connection.
func (d *writeDeadline) SetLinger(sec int) error {
	if tcp, ok := d.Conn.(interface{ SetLinger(sec int) error }); ok {
		return tcp.SetLinger(sec)
	}
	return errors.ErrUnsupported
}
