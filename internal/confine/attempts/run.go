//go:build linux && (amd64 || arm64)

package attempts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"slices"
	"syscall"
	"time"
)

// A Report says what one attempt has seen.
type Report struct{ Name, Seen string }

// Main serves the hidden command of the program. Its arguments are a World, and the name of the attempt
// that this process makes. Without a name it makes each attempt in a process of its own, and prints reports.
func Main(all []Attempt, args []string, out io.Writer) error {
	if len(args) == 0 {
		return errors.New("no world")
	}
	w := &World{}
	if err := json.Unmarshal([]byte(args[0]), w); err != nil {
		return err
	}
	for _, a := range all {
		switch {
		case len(args) > 1 && args[1] == a.Name:
			runtime.LockOSThread() // namespaces and credentials belong to a thread
			return a.Try(&Trial{w, a.Name})
		case len(args) == 1 && w.missing(a) == "":
			if err := json.NewEncoder(out).Encode(w.runOne(args[0], a)); err != nil {
				return err
			}
		}
	}
	time.Sleep(300 * time.Millisecond) // what was sent last may still be on its way
	return nil
}

// timeLimit is how long one attempt may take. All that can succeed do so at once.
const timeLimit = 2 * time.Second

// runOne makes one attempt in a process group of its own, which ends with it.
func (w *World) runOne(world string, a Attempt) Report {
	ctx, cancel := context.WithTimeout(context.Background(), timeLimit)
	defer cancel()
	words := append(slices.Clone(w.Self), world, a.Name)
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	// os/exec closes no descriptor that has no FD_CLOEXEC, so those that were inherited stay open.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 100 * time.Millisecond
	out, err := cmd.CombinedOutput()
	return Report{a.Name, fmt.Sprintf("%.2000s %v", out, err)}
}
