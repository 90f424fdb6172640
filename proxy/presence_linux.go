package proxy

import (
	"syscall"

	"golang.org/x/sys/unix"
)

const canTellPeerLeft = true

// peerLeft reports whether the other side has closed a connection, or its half of it, even if
// something that it sent before has not been read. So it is if we have.
func peerLeft(raw syscall.RawConn) (left bool) {
	err := raw.Control(func(fd uintptr) {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		n, err := unix.Poll(fds, 0)
		left = err == nil && n > 0
	})
	return left || err != nil
}
