//go:build unix

package netconn

import "syscall"

// tryRead reads what a socket, which does not block, has. It reports whether that is
// nothing, while more may come; at the end, and where it fails, it is neither.
func tryRead(fd uintptr, p []byte) (n int, nothing bool) {
	n, err := syscall.Read(int(fd), p)
	if err != nil {
		return 0, err == syscall.EAGAIN || err == syscall.EWOULDBLOCK
	}
	return n, false
}
