package origin

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/policy/snapshot"
)

func newDescriptors(limit int, log *slog.Logger) *Descriptors {
	return &Descriptors{Limit: limit, Log: log}
}

// TestShares: the division of a limit leaves descriptors for each use, and does not exceed the limit.
func TestShares(t *testing.T) {
	for _, limit := range []int{64, 300, 1024, 20_000, 65_536, 1 << 20} {
		d := newDescriptors(limit, nil)
		clients, origins := d.Clients(1<<30), d.origins()
		admin, rejected := d.Other(500), d.Other(100)
		if sum := clients + origins + d.reserve(); sum > limit || clients < limit/2 || origins < 8 {
			t.Errorf("%d: %d for clients, %d for origins, %d in reserve", limit, clients, origins, d.reserve())
		}
		if admin+rejected > d.reserve()/2 || admin < 1 || rejected < 1 {
			t.Errorf("%d: %d admin connections and %d rejected clients in a reserve of %d", limit, admin, rejected, d.reserve())
		}
		if idle := d.idle(); 2*idle > origins/2+1 || idle < 1 {
			t.Errorf("%d: %d idle connections in each pool, of %d to origins", limit, idle, origins)
		}
	}
	for limit, want := range map[int]int{64: 24, 300: 37, 1024: 128, 16_000: 2000, 20_000: 2048} { // an eighth, 24 to 2048
		if got := newDescriptors(limit, nil).reserve(); got != want {
			t.Errorf("%d: %d in reserve, want %d", limit, got, want)
		}
	}
	unknown := newDescriptors(0, nil)
	if unknown.Clients(10) != 10 || unknown.Other(500) != 500 || unknown.idle() != maxIdle || !unknown.take(1<<30) {
		t.Error("there is a bound where no limit is known")
	}
	if d := newDescriptors(19_999, nil); d.Clients(10_000) != 10_000 {
		t.Error("the runtime's soft limit, one less than the hard one, makes a difference")
	}
}

// TestCountedOnce: a connection is counted until it is closed, and may be closed twice.
func TestCountedOnce(t *testing.T) {
	d := newDescriptors(300, quietLog)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := d.dial(func() (net.Conn, error) { return net.Dial("tcp", l.Addr().String()) })
	if err != nil || d.inUse != 1 {
		t.Fatalf("%v, %d in use", err, d.inUse)
	}
	conn.Close()
	conn.Close()
	if _, err := d.dial(func() (net.Conn, error) { return nil, errors.New("refused") }); err == nil || d.inUse != 0 {
		t.Errorf("%v, %d in use", err, d.inUse)
	}
	if err := d.lookup(func() error { return nil }); err != nil || d.inUse != 0 {
		t.Errorf("%v, %d in use", err, d.inUse)
	}
}

// A failingListener fails to accept the given number of times.
type failingListener struct {
	net.Listener
	errno syscall.Errno
	times int
	tries int
}

func (l *failingListener) Accept() (net.Conn, error) {
	if l.tries++; l.tries <= l.times {
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", l.errno)}
	}
	ours, _ := net.Pipe()
	return ours, nil
}

// TestAcceptShortage: Accept closes idle connections and tries again. If that does not help it returns an error
// after which net/http waits and goes on. Other errors are returned unchanged.
func TestAcceptShortage(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM} {
		d := newDescriptors(300, quietLog)
		u := newTransport(t, Config{DialTimeout: patience, IdleTimeout: time.Hour}, d)
		l := &failingListener{errno: errno, times: 1}
		if conn, err := d.Listener(l).Accept(); err != nil || conn == nil || d.Failures() != 0 {
			t.Errorf("%v: %v, %d failures", errno, err, d.Failures())
		}
		l = &failingListener{errno: errno, times: 2}
		_, err := d.Listener(l).Accept()
		if temporary, ok := err.(interface{ Temporary() bool }); !ok || !temporary.Temporary() || l.tries != 2 || d.Failures() != 1 {
			t.Errorf("%v: %v after %d tries, %d failures", errno, err, l.tries, d.Failures())
		}
		u.Close()
	}
	l := &failingListener{errno: syscall.EINVAL, times: 1}
	if _, err := new(Descriptors).Listener(l).Accept(); !errors.Is(err, syscall.EINVAL) || l.tries != 1 {
		t.Errorf("got %v after %d tries", err, l.tries)
	}
}

// TestShortageWarning: a shortage is logged once a minute, with the number of failures.
func TestShortageWarning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		d := newDescriptors(300, slog.New(slog.NewTextHandler(&text, nil)))
		for range 5 {
			if err := d.fail(errAllInUse); !errors.Is(err, snapshot.ErrExhausted) {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute) // fake clock
		d.fail(syscall.ENOMEM)
		lines := strings.Split(strings.TrimSpace(text.String()), "\n")
		if len(lines) != 2 || !strings.Contains(lines[0], "out of file descriptors") || !strings.Contains(lines[0], "times=1 limit=300") ||
			!strings.Contains(lines[1], "out of memory") || !strings.Contains(lines[1], "times=5") {
			t.Errorf("got %q", lines)
		}
	})
}

// TestNoShortage: errors of origins and of names are no shortage.
func TestNoShortage(t *testing.T) {
	to := func(ip string, err error) error {
		return &net.OpError{Op: "dial", Net: "tcp", Addr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(ip), 80)), Err: os.NewSyscallError("connect", err)}
	}
	for _, err := range []error{
		nil, io.EOF, syscall.ECONNREFUSED, context.DeadlineExceeded, to("192.0.2.1", syscall.ETIMEDOUT),
		to("2001:db8::1", syscall.EADDRNOTAVAIL), // there is no IPv6 here
		&net.DNSError{Err: "no such host", Name: "too many open files", IsNotFound: true},
		fmt.Errorf("the origin said: %q", syscall.EMFILE.Error()),
	} {
		if s := ShortageIn(err); s != nil {
			t.Errorf("%v: %s", err, s.What)
		}
	}
	for _, err := range []error{to("192.0.2.1", syscall.EADDRNOTAVAIL), to("2001:db8::1", syscall.EMFILE), &net.DNSError{Err: "dial udp 192.0.2.53:53: socket: too many open files"}} {
		if ShortageIn(err) == nil {
			t.Errorf("%v is none", err)
		}
	}
}

// A slowClose is a connection whose Close takes time, as in TLS if the origin does not
// read. It is counted until then.
type slowClose struct {
	net.Conn
	of      *Descriptors
	closing chan struct{}
}

func (c *slowClose) Close() error {
	close(c.closing)
	time.Sleep(closeWait / 2) // fake clock
	c.of.release(2 * perDial)
	return c.Conn.Close()
}

// TestWaitForClosing: a dial that needs a descriptor waits while another dial closes idle connections.
func TestWaitForClosing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDescriptors(300, quietLog)
		u := newTransport(t, Config{DialTimeout: patience, IdleTimeout: time.Hour}, d)
		closing := make(chan struct{})
		u.netHTTP.http2.DialContext = func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go func() {
				if _, err := http.ReadRequest(bufio.NewReader(theirs)); err == nil {
					io.WriteString(theirs, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
				}
			}()
			return &slowClose{ours, d, closing}, nil
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://origin.example/", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := u.netHTTP.http2.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		synctest.Wait()
		d.take(d.origins())
		taken := make(chan bool)
		go func() { taken <- d.take(perDial) }()
		<-closing
		second := d.take(perDial)
		if first := <-taken; !first || !second {
			t.Error("a dial does not wait for the connections that are about to be closed")
		}
	})
}
