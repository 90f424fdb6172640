//go:build unix

package cli

import (
	"os/exec"
	"syscall"
)

// alone puts a command and whatever it starts into a group that ends as one.
func alone(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
