//go:build unix

package netconn

import (
	"crypto/tls"
	"io"
	"net"
	"syscall"
	"testing"
	"time"
)

// patience bounds every wait for something that should come at once.
const patience = 10 * time.Second

// connected returns the two ends of a connection.
func connected(t *testing.T) (ours, theirs *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	other, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(); other.Close() })
	return conn.(*net.TCPConn), other.(*net.TCPConn)
}

// arrive waits until n bytes, or the end of the connection, have arrived, and reads nothing.
func arrive(t *testing.T, conn net.Conn, n int) {
	t.Helper()
	conn.SetDeadline(time.Now().Add(patience))
	err := rawConn(conn).Read(func(fd uintptr) bool {
		got, _, err := syscall.Recvfrom(int(fd), make([]byte, n), syscall.MSG_PEEK)
		return err != syscall.EAGAIN && (err != nil || got == 0 || got == n)
	})
	conn.SetDeadline(time.Time{})
	if err != nil {
		t.Fatal(err)
	}
}

// TestSocket: what ReadNow reads, and whether Silent reports an open connection without data.
func TestSocket(t *testing.T) {
	for name, k := range map[string]struct {
		before func(t *testing.T, ours, theirs *net.TCPConn)
		silent bool
		want   string
	}{
		"nothing":  {func(*testing.T, *net.TCPConn, *net.TCPConn) {}, true, ""},
		"some":     {func(t *testing.T, ours, theirs *net.TCPConn) { io.WriteString(theirs, "ab"); arrive(t, ours, 2) }, false, "ab"},
		"more":     {func(t *testing.T, ours, theirs *net.TCPConn) { io.WriteString(theirs, "abcdef"); arrive(t, ours, 6) }, false, "abcd"},
		"end":      {func(t *testing.T, ours, theirs *net.TCPConn) { theirs.CloseWrite(); arrive(t, ours, 1) }, false, ""},
		"reset":    {func(t *testing.T, ours, theirs *net.TCPConn) { theirs.SetLinger(0); theirs.Close(); arrive(t, ours, 1) }, false, ""},
		"closed":   {func(_ *testing.T, ours, _ *net.TCPConn) { ours.Close() }, false, ""},
		"deadline": {func(_ *testing.T, ours, _ *net.TCPConn) { ours.SetDeadline(time.Unix(1, 0)) }, true, ""},
		"data after the deadline": {func(t *testing.T, ours, theirs *net.TCPConn) {
			io.WriteString(theirs, "ab")
			arrive(t, ours, 2)
			ours.SetDeadline(time.Unix(1, 0))
		}, false, "ab"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, look := range []bool{false, true} {
				ours, theirs := connected(t)
				k.before(t, ours, theirs)
				var s Socket
				s.Init(New(ours))
				if look {
					if got := s.Silent(); got != k.silent {
						t.Errorf("silent: %v", got)
					}
					continue
				}
				p := make([]byte, 4)
				if n := s.ReadNow(p); string(p[:n]) != k.want {
					t.Errorf("read %q", p[:n])
				}
				if s.into != nil {
					t.Error("the buffer is kept")
				}
			}
		})
	}
}

// TestSocketBelow: a Socket is found below TLS. A connection without a descriptor is silent.
func TestSocketBelow(t *testing.T) {
	ours, theirs := connected(t)
	io.WriteString(theirs, "a")
	arrive(t, ours, 1)
	var s Socket
	s.Init(tls.Client(New(ours), &tls.Config{}))
	if s.Silent() {
		t.Error("nothing is found below TLS")
	}
	pipe, other := net.Pipe()
	defer pipe.Close()
	defer other.Close()
	var none Socket
	none.Init(pipe)
	if !none.Silent() || none.ReadNow(make([]byte, 4)) != 0 {
		t.Error("a pipe has no descriptor, and was read")
	}
	if n := s.ReadNow(nil); n != 0 {
		t.Errorf("%d bytes were read into an empty buffer", n)
	}
	if allocs := testing.AllocsPerRun(100, func() { s.Silent(); s.ReadNow(s.one[:]) }); allocs > 0 {
		t.Errorf("a read allocates %v times", allocs)
	}
}
