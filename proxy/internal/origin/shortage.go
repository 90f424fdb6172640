package origin

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"

	"robotsgate/policy/snapshot"
)

// errAllInUse is the error when all descriptors for connections to origins are in use. It is
// reported to clients as if the system itself had none left.
var errAllInUse = fmt.Errorf("all connections to origins are in use: %w", syscall.EMFILE)

// A Shortage is something that the gate's machine can run out of. It says nothing about the
// origin of a connection that could not be opened.
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

// ShortageIn returns the shortage that is the cause of an error, and nil if there is none.
func ShortageIn(err error) *Shortage {
	dns, isDNS := errors.AsType[*net.DNSError](err)
	for i := range shortages {
		s := &shortages[i]
		// A DNSError does not wrap the socket's error, but contains its text.
		if isDNS && strings.HasSuffix(dns.Err, s.errno.Error()) || errors.Is(err, s.errno) && (s.errno != syscall.EADDRNOTAVAIL || toIPv4(err)) {
			return s
		}
	}
	return nil
}

// toIPv4 reports whether a dialled address was IPv4. For IPv6, EADDRNOTAVAIL mostly
// means that the machine has no IPv6 address.
func toIPv4(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	if !ok {
		return false
	}
	to, ok := op.Addr.(*net.TCPAddr)
	return ok && to.IP.To4() != nil
}

func exhausted(err error) bool { return ShortageIn(err) != nil }

// fail counts a connection that could not be opened or accepted, writes a warning at most once a minute,
// and returns the error as a snapshot.ErrExhausted.
func (d *Descriptors) fail(err error) error {
	d.failures.Add(1)
	if times := d.warned.Add(); times > 0 && d.Log != nil {
		s := ShortageIn(err)
		d.Log.Warn("the gate is out of "+s.What+", and answers 503 where it needs more: "+s.Remedy, "times", times, "limit", d.Limit, "error", err)
	}
	return fmt.Errorf("%w: %w", snapshot.ErrExhausted, err)
}

// mark is fail for an error that a shortage caused and that is not marked yet. It returns other errors
// unchanged.
func (d *Descriptors) mark(err error) error {
	if err == nil || errors.Is(err, snapshot.ErrExhausted) || !exhausted(err) {
		return err
	}
	return d.fail(err)
}

// Failures returns how often a connection could not be opened or accepted because there was no
// descriptor, a local port, or memory.
func (d *Descriptors) Failures() int64 { return d.failures.Load() }

// Listener returns l with an Accept that closes idle connections to origins when descriptors
// run out, tries again, and then returns a temporary error. After such an error net/http waits for up to
// a second; after any other it would stop serving.
func (d *Descriptors) Listener(l net.Listener) net.Listener { return &listener{l, d} }

type listener struct {
	net.Listener
	descriptors *Descriptors
}

func (l *listener) Accept() (net.Conn, error) {
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

// A temporaryError is a net.Error that is temporary.
type temporaryError struct{ error }

func (e temporaryError) Unwrap() error { return e.error }
func (temporaryError) Timeout() bool   { return false }
func (temporaryError) Temporary() bool { return true }
