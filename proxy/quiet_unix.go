//go:build unix

package proxy

import "syscall"

// nothingToRead reports whether a socket, which does not block, is open and has nothing
// to read. What it has is lost.
func nothingToRead(fd uintptr) bool {
	var b [1]byte
	_, err := syscall.Read(int(fd), b[:])
	return err == syscall.EAGAIN || err == syscall.EWOULDBLOCK
}

// readNow reads what a socket, which does not block, has. It returns 0 where it has
// nothing, or came to its end.
func readNow(fd uintptr, p []byte) int {
	n, err := syscall.Read(int(fd), p)
	if err != nil {
		return 0
	}
	return n
}
