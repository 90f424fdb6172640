//go:build unix

package netconn

import "syscall"

// tryRead reads from a non-blocking socket. Nothing reports that no data has arrived, but more may: it is false
// at the end of the connection, and after an error.
func tryRead(fd uintptr, p []byte) (n int, nothing bool) {
	n, err := syscall.Read(int(fd), p)
	if err != nil {
		return 0, err == syscall.EAGAIN || err == syscall.EWOULDBLOCK
	}
	return n, false
}
