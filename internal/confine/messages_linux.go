//go:build linux && (amd64 || arm64)

package confine

import (
	"errors"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// The two processes talk over a stream of values of encoding/gob, except that the stub passes its sockets first: one
// byte for each, with the descriptor.

// A setup is the first message to the stub.
type setup struct {
	Sockets []socket
	Masked  []string // paths of sockets that are hidden, see hostSockets
}

// A socket is one that the stub opens and passes to its parent.
type socket struct {
	UDP      bool
	Addr     netip.AddrPort
	Optional bool // a system without IPv6 does not have it
}

// A launch is the second message to the stub.
type launch struct {
	Path, Dir string
	Args, Env []string
	Bundle    string
	ReadOnly  string
	Hidden    []string
}

// An order is each further message to the stub.
type order struct{ Signal int }

// A report is what the stub says once: the command has started, or why it has not.
type report struct {
	Step    string // that failed; "": none has
	Message string
	Errno   int  // of Message, if there is one
	Exec    bool // the command could not be executed; everything before could
}

// Bytes before a socket.
const (
	socketFollows = 's'
	socketMissing = '-' // an optional one
	reportFollows = 'r' // in place of all sockets that are left
)

// failed returns nil if err is, and otherwise a [StepError], to which the parent adds a remedy.
func failed(step string, err error) error {
	if err == nil {
		return nil
	}
	return &StepError{Step: step, Err: err}
}

// receiveSocket reads one byte, and the descriptor that comes with it. It is nil if none does.
func receiveSocket(from int) (kind byte, f *os.File, err error) {
	buf, oob := make([]byte, 1), make([]byte, unix.CmsgSpace(4))
	var n, oobn int
	for {
		n, oobn, _, _, err = unix.Recvmsg(from, buf, oob, unix.MSG_CMSG_CLOEXEC)
		if err != unix.EINTR {
			break
		}
	}
	switch {
	case err != nil:
		return 0, nil, err
	case n == 0:
		return 0, nil, errors.New("the process in the namespaces has ended")
	}
	messages, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil || len(messages) == 0 {
		return buf[0], nil, err
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return 0, nil, errors.Join(err, errors.New("no descriptor came with a socket"))
	}
	return buf[0], os.NewFile(uintptr(fds[0]), "socket"), nil
}
