package client

import (
	"cmp"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// setUserTimeout makes the kernel end a connection whose peer reads nothing of what is sent for this long
// (TCP_USER_TIMEOUT, RFC 5482).
func setUserTimeout(c net.Conn, d time.Duration) error {
	socket, ok := c.(syscall.Conn)
	if !ok {
		return nil // a pipe
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return err
	}
	var set error
	err = raw.Control(func(fd uintptr) {
		set = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(d.Milliseconds()))
	})
	return cmp.Or(set, err)
}
