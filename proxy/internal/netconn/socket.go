package netconn

import (
	"net"
	"syscall"
)

// A socket is what lies under a connection, and can be read without waiting, whatever the
// connection's deadlines. In TLS what is read would be lost to the connection.
type Socket struct {
	raw syscall.RawConn  // nil: there is none that could be read
	try func(fd uintptr) // kept, since to make it anew would allocate each time

	// These are of one try.
	into    []byte
	n       int
	nothing bool
	one     [1]byte
}

// EmptySocket is one that never has anything.
var EmptySocket Socket

// of makes it that of a connection. It must not be copied then.
func (s *Socket) Init(conn net.Conn) {
	s.raw = RawConn(conn)
	s.try = func(fd uintptr) { s.n, s.nothing = tryRead(fd, s.into) }
}

// silent reports whether the other side has neither closed the connection nor sent
// anything, of which a byte is lost.
func (s *Socket) Silent() bool {
	if s.raw == nil {
		return true
	}
	s.into = s.one[:]
	return s.raw.Control(s.try) == nil && s.nothing
}

// ReadNow reads what has come. It returns 0 where that is nothing, or the end.
func (s *Socket) ReadNow(p []byte) int {
	if s.raw == nil || len(p) == 0 {
		return 0
	}
	s.into = p
	err := s.raw.Control(s.try)
	s.into = nil // else it would be held for as long as the connection is kept
	if err != nil {
		return 0
	}
	return s.n
}

// RawConn returns what a connection's descriptor can be looked at by, nil if it has none.
func RawConn(conn net.Conn) syscall.RawConn {
	for {
		outer, ok := conn.(interface{ NetConn() net.Conn })
		if !ok {
			break
		}
		conn = outer.NetConn()
	}
	if c, ok := conn.(syscall.Conn); ok {
		if raw, err := c.SyscallConn(); err == nil {
			return raw
		}
	}
	return nil
}

// Raw returns the descriptor, nil if there is none that could be read.
func (s *Socket) Raw() syscall.RawConn { return s.raw }
