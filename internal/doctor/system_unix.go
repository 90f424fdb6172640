//go:build unix

package doctor

import (
	"os/exec"
	"syscall"
)

// ownGroup gives a command a process group. When its context ends, the whole group is
// killed.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
