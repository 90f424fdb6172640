//go:build unix

package terminal

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// foreground reports whether this process is in the foreground of the terminal. If the
// terminal does not control the process, it counts as being in the foreground.
func foreground(terminal *os.File) bool {
	group, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPGRP)
	return err != nil || group == syscall.Getpgrp()
}
