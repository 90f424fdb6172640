//go:build linux && (amd64 || arm64)

package escapes

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// sessionKeyVariable has the secret of the session keyring's key. The attempts do not get it.
const sessionKeyVariable = "ROBOTSGATE_ATTEMPTS_KEY"

// launch runs a command with a session keyring that has a key named run. The command inherits it.
func launch(run string, command []string) error {
	secret := os.Getenv(sessionKeyVariable)
	os.Unsetenv(sessionKeyVariable)
	program, err := exec.LookPath(command[0])
	if err != nil {
		return err
	}
	runtime.LockOSThread() // a keyring belongs to a thread, and execve keeps the calling thread's
	if secret != "" {
		if _, err := unix.KeyctlJoinSessionKeyring(run); err != nil {
			return fmt.Errorf("session keyring: %w", err)
		}
		if _, err := unix.AddKey("user", run, []byte(secret), unix.KEY_SPEC_SESSION_KEYRING); err != nil {
			return fmt.Errorf("add a key: %w", err)
		}
	}
	return syscall.Exec(program, command, os.Environ())
}
