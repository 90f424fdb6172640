package origin

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"time"

	"robotsgate/policy"
)

// errAllInUse is the error when all descriptors for connections to origins are in use. To
// the client it is the same as the system's own.
var errAllInUse = fmt.Errorf("all connections to origins are in use: %w", syscall.EMFILE)

// A Shortage is something that the gate's machine can run out of. It says nothing about the
// origin that a connection was meant for.
type Shortage struct {
	What   string
	Remedy string
	errno  syscall.Errno
}

var shortages = []Shortage{
	{"file descriptors", "raise the limit on open files of the gate: ulimit -n, LimitNOFILE in a systemd unit, ulimits in a compose file", syscall.EMFILE},
	{"file descriptors of the whole machine", "raise fs.file-max of the gate's machine", syscall.ENFILE},
	{"local ports for connections to this origin", "widen net.ipv4.ip_local_port_range on the gate's machine, or let it make fewer connections", syscall.EADDRNOTAVAIL},
	{"memory for connections", "give the gate's machine more memory, or let it serve fewer clients", syscall.ENOBUFS},
	{"memory for connections", "give the gate's machine more memory, or let it serve fewer clients", syscall.ENOMEM},
}

// ShortageIn returns the shortage that an error tells of, nil if it is about something else.
func ShortageIn(err error) *Shortage {
	if err == nil {
		return nil
	}
	dns, isDNS := errors.AsType[*net.DNSError](err)
	for i := range shortages {
		s := &shortages[i]
		switch {
		case isDNS:
			// A DNSError does not wrap the socket's error, it only has its text.
			if strings.HasSuffix(dns.Err, s.errno.Error()) {
				return s
			}
		case s.errno == syscall.EADDRNOTAVAIL:
			if errors.Is(err, s.errno) && toIPv4(err) {
				return s
			}
		case errors.Is(err, s.errno):
			return s
		}
	}
	return nil
}

// toIPv4 reports whether a dial's address was IPv4. To one of IPv6, EADDRNOTAVAIL mostly
// means that the machine has no IPv6 address of its own.
func toIPv4(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	if !ok {
		return false
	}
	to, ok := op.Addr.(*net.TCPAddr)
	return ok && to.IP.To4() != nil
}

func exhausted(err error) bool { return ShortageIn(err) != nil }

// warnEvery is the least time between two warnings of a shortage.
const warnEvery = time.Minute

// fail counts a connection that could not be had, warns of it now and then, and marks the
// error as one that is not the origin's.
func (d *Descriptors) fail(err error) error {
	d.mu.Lock()
	d.failed++
	d.unsaid++
	times, now := d.unsaid, time.Now()
	say := d.Log != nil && now.Sub(d.warning) >= warnEvery
	if say {
		d.warning, d.unsaid = now, 0
	}
	d.mu.Unlock() // before the log, which may be slow
	if say {
		s := ShortageIn(err)
		d.Log.Warn("the gate is out of "+s.What+", and answers 503 where it needs more: "+s.Remedy, "times", times, "limit", d.Limit, "error", err)
	}
	return fmt.Errorf("%w: %w", policy.ErrExhausted, err)
}

// mark is fail for errors that tell of a shortage and are not marked yet. It returns others as
// they are.
func (d *Descriptors) mark(err error) error {
	if err == nil || errors.Is(err, policy.ErrExhausted) || !exhausted(err) {
		return err
	}
	return d.fail(err)
}

// A steadyListener goes on when the gate is out of descriptors.
type steadyListener struct {
	net.Listener
	descriptors *Descriptors
}

// Listener returns l with an Accept that closes idle connections to origins when descriptors
// run out, tries again, and then returns a temporary error: net/http waits after those, up to
// a second, and would end after others.
func (d *Descriptors) Listener(l net.Listener) net.Listener { return &steadyListener{l, d} }

func (l *steadyListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if !exhausted(err) {
		return conn, err
	}
	l.descriptors.closeIdle()
	if conn, err = l.Listener.Accept(); !exhausted(err) {
		return conn, err
	}
	return nil, temporaryError{l.descriptors.fail(err)}
}

// A temporaryError is a net.Error after which to try again.
type temporaryError struct{ error }

func (e temporaryError) Unwrap() error { return e.error }
func (temporaryError) Timeout() bool   { return false }
func (temporaryError) Temporary() bool { return true }
