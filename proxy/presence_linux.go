package proxy

import (
	"syscall"

	"golang.org/x/sys/unix"
)

const canTellPeerLeft = true

// peerLeft reports whether the other side has closed a connection, or its half of it, even if
// something that it sent before has not been read, and whether something is to be read. It has left too
// if we have.
func peerLeft(raw syscall.RawConn) (left, more bool) {
	err := raw.Control(func(fd uintptr) {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP | unix.POLLIN}}
		if _, err := unix.Poll(fds, 0); err != nil {
			return
		}
		left = fds[0].Revents&^unix.POLLIN != 0
		more = fds[0].Revents&unix.POLLIN != 0
	})
	return left || err != nil, more
}
