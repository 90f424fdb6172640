//go:build unix

package cli

import (
	"math"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// descriptorLimit returns how many files the process may have open, 0 if it is not known.
// The Go runtime has raised the soft limit to the hard limit, for this process only.
func descriptorLimit() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return int(min(uint64(limit.Cur), math.MaxInt32)) // it may be unlimited
}

// foreground reports whether this process is in the foreground of the terminal. If the
// terminal does not control the process, it counts as being in the foreground.
func foreground(terminal *os.File) bool {
	group, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPGRP)
	return err != nil || group == syscall.Getpgrp()
}

// ownGroup gives a command a process group. When its context ends, the whole group is
// killed.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
