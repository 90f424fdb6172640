//go:build unix && !solaris && !aix

package audit

import (
	"os"
	"syscall"
)

// tryLock locks a file, or reports that another process has it locked.
func tryLock(f *os.File) (got, busy bool) {
	err := flock(f, syscall.LOCK_EX|syscall.LOCK_NB)
	return err == nil, err == syscall.EWOULDBLOCK || err == syscall.EINTR
}

func unlock(f *os.File) { _ = flock(f, syscall.LOCK_UN) }

func flock(f *os.File, how int) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	if e := conn.Control(func(fd uintptr) { err = syscall.Flock(int(fd), how) }); e != nil {
		return e
	}
	return err
}
