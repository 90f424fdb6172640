package netconn

import (
	"net"
	"syscall"
)

// A Socket reads from a connection without waiting, whatever its deadlines. It reads below TLS, which
// never sees these bytes.
//
// It relies on sockets not to block, as the runtime makes them on Unix; TestSocket shows what it finds. Elsewhere, and
// on a connection without a descriptor, nothing can ever be read.
type Socket struct {
	raw syscall.RawConn  // nil: there is no descriptor
	try func(fd uintptr) // kept: a new closure for each try would be allocated

	// Of one try.
	into    []byte
	n       int
	nothing bool // there was nothing to read, and the connection is open
	one     [1]byte
}

// Init makes s the Socket of a connection. It must not be copied after that.
func (s *Socket) Init(conn net.Conn) {
	s.raw = rawConn(conn)
	s.try = func(fd uintptr) { s.n, s.nothing = tryRead(fd, s.into) }
}

// Silent reports whether the peer has neither closed the connection nor sent
// anything. If it has, a byte is lost.
func (s *Socket) Silent() bool {
	if s.raw == nil {
		return true
	}
	s.into = s.one[:]
	return s.raw.Control(s.try) == nil && s.nothing
}

// ReadNow reads what has arrived. It returns 0 if nothing has, and at the end of the connection.
func (s *Socket) ReadNow(p []byte) int {
	if s.raw == nil || len(p) == 0 {
		return 0
	}
	s.into = p
	err := s.raw.Control(s.try)
	s.into = nil // do not keep the buffer alive
	if err != nil {
		return 0
	}
	return s.n
}

// rawConn returns a connection's descriptor, also from below TLS and other layers that have NetConn. It returns nil if there is none.
func rawConn(conn net.Conn) syscall.RawConn {
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
