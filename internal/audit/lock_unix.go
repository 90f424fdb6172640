//go:build unix && !solaris && !aix

package audit

import (
	"os"
	"syscall"
)

// isLocked locks a file until it is closed, and reports whether another process has done so.
func isLocked(f *os.File) bool {
	conn, err := f.SyscallConn()
	if err != nil {
		return false
	}
	_ = conn.Control(func(fd uintptr) { err = syscall.Flock(int(fd), syscall.LOCK_EX|syscall.LOCK_NB) })
	return err == syscall.EWOULDBLOCK
}
