//go:build linux && (amd64 || arm64)

package escapes

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"robotsgate/internal/confine/attempts"
)

// Main serves the program that makes the attempts. Its first argument is a role, or a World as for
// [attempts.Main].
func Main(args []string, in io.Reader, out io.Writer) error {
	switch {
	case len(args) == 1 && args[0] == "stand-in":
		return standIn(in, out)
	case len(args) >= 3 && args[0] == "launch":
		return launch(args[1], args[2:])
	case len(args) >= 4 && args[0] == "stage":
		return runStage(args[1], args[2], args[3], args[4:], out)
	}
	return attempts.Main(runnable(), args, out)
}

// self returns a command that runs Main with args.
func self(w *attempts.World, args ...string) *exec.Cmd {
	words := slices.Concat(w.Self, args)
	return exec.Command(words[0], words[1:]...)
}

// A stage is the part of an attempt that needs a process of its own, in new namespaces or with a
// privileged program.
var stages = map[string]func(*trial, []string) error{
	"bind": stageBind, "unmount": stageUnmount, "overlay": stageOverlay, "proc": stageProc,
	"veth": stageVeth, "join": stageJoin, "unix": stageUnix, "daemon": stageDaemon, "moved": stageMoved, "move": stageMove,
}

func runStage(world, name, stage string, args []string, out io.Writer) error {
	w := &attempts.World{}
	if err := json.Unmarshal([]byte(world), w); err != nil {
		return err
	}
	do, ok := stages[stage]
	if !ok {
		return fmt.Errorf("unknown stage %q", stage)
	}
	t, err := newTrial(&attempts.Trial{World: w, Name: name})
	if err != nil {
		return err
	}
	runtime.LockOSThread() // namespaces and credentials belong to a thread
	if err := t.report(do(t, args)); err != nil {
		_, err = fmt.Fprintln(out, err)
		return err
	}
	return nil
}

// world returns the world as [Main] reads it.
func (t *trial) world() string {
	data, _ := json.Marshal(t.World)
	return string(data)
}

// stage runs a stage in new namespaces. With CLONE_NEWUSER it is root there.
func (t *trial) stage(flags uintptr, stage string, args ...string) error {
	return t.stageWith(self(t.World, slices.Concat([]string{"stage", t.world(), t.Name, stage}, args)...), flags)
}

func (t *trial) stageWith(cmd *exec.Cmd, flags uintptr) error {
	cmd.SysProcAttr = inNew(flags)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("stage: %w %.300s", err, out)
	}
	if len(out) > 0 {
		return errors.New(strings.TrimSpace(string(out)))
	}
	return nil
}

// inNew returns the attributes of a process in new namespaces. With CLONE_NEWUSER it is root there.
func inNew(flags uintptr) *syscall.SysProcAttr {
	sys := &syscall.SysProcAttr{Cloneflags: flags}
	if flags&unix.CLONE_NEWUSER != 0 {
		sys.UidMappings = []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}}
		sys.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}}
	}
	return sys
}
