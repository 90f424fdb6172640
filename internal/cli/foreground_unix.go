//go:build unix

package cli

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// foreground reports whether the terminal is this process's to draw on, and not a
// shell's, which has started it in the background. Of a terminal that does not
// control the process nobody else does.
func foreground(terminal *os.File) bool {
	group, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPGRP)
	return err != nil || group == syscall.Getpgrp()
}
