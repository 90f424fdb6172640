//go:build linux && (amd64 || arm64)

package attempts

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// timeLimit is how long one attempt may take. All that can succeed do so at once.
const timeLimit = 2 * time.Second

// A report is the line that an attempt's process prints.
type report struct {
	Name  string   `json:"name"`
	Error string   `json:"error,omitempty"`
	Found []string `json:"found,omitempty"`
}

// Main serves the hidden command of the program. Its arguments are a role and the role's own.
func Main(args []string, in io.Reader, out io.Writer) error {
	if len(args) == 0 {
		return errors.New("no role")
	}
	role, args := args[0], args[1:]
	switch {
	case role == "stand-in":
		return standIn(in, out)
	case role == "launch" && len(args) >= 2:
		return launch(args[0], args[1:])
	case role == "run" && len(args) == 1:
		w, err := load(args[0])
		if err != nil {
			return err
		}
		return w.runAll(args[0], out)
	case role == "try" && len(args) == 2:
		return try(args[0], args[1], out)
	case role == "stage" && len(args) >= 3:
		return runStage(args[0], args[1], args[2], args[3:], out)
	}
	return fmt.Errorf("unknown role %q", role)
}

func load(file string) (*World, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	w := &World{}
	if err := json.Unmarshal(data, w); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return w, nil
}

// runAll makes every attempt that the world has targets for, each in a process of its own, and
// prints a report for each.
func (w *World) runAll(file string, out io.Writer) error {
	for _, a := range All() {
		if w.missing(a) != "" {
			continue
		}
		if err := json.NewEncoder(out).Encode(w.runOne(file, a.Name)); err != nil {
			return err
		}
	}
	return nil
}

// runOne makes one attempt in a process group of its own, which ends with it.
func (w *World) runOne(file, name string) report {
	ctx, cancel := context.WithTimeout(context.Background(), timeLimit)
	defer cancel()
	cmd := w.self(ctx, "try", file, name)
	// os/exec closes no descriptor that has no FD_CLOEXEC, so those that were inherited stay open.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 100 * time.Millisecond
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	r := report{Name: name}
	if json.Unmarshal(stdout.Bytes(), &r) == nil && err == nil {
		return r
	}
	r.Name, r.Error = name, strings.TrimSpace(fmt.Sprintf("%v %.300s", err, stderr.String()))
	if ctx.Err() != nil {
		r.Error = "no result within " + timeLimit.String()
	}
	return r
}

// self returns a command that runs Main with args.
func (w *World) self(ctx context.Context, args ...string) *exec.Cmd {
	args = append(w.Self[1:len(w.Self):len(w.Self)], args...)
	return exec.CommandContext(ctx, w.Self[0], args...)
}

// try makes one attempt in this process, and prints its report.
func try(file, name string, out io.Writer) error {
	w, err := load(file)
	if err != nil {
		return err
	}
	a, err := find(name)
	if err != nil {
		return err
	}
	t := &trial{World: w, name: name}
	// Namespaces and credentials belong to a thread.
	runtime.LockOSThread()
	return json.NewEncoder(out).Encode(t.report(a.try(t)))
}

func (t *trial) report(err error) report {
	r := report{Name: t.name, Found: t.found}
	if err != nil {
		r.Error = err.Error()
	}
	return r
}

// A stage is the part of an attempt that needs a process of its own, in new namespaces or with a
// privileged program.
var stages = map[string]func(*trial, []string) error{
	"bind": stageBind, "unmount": stageUnmount, "overlay": stageOverlay, "proc": stageProc,
	"veth": stageVeth, "join": stageJoin, "unix": stageUnix, "daemon": stageDaemon, "moved": stageMoved, "move": stageMove,
}

func runStage(file, name, stage string, args []string, out io.Writer) error {
	w, err := load(file)
	if err != nil {
		return err
	}
	do, ok := stages[stage]
	if !ok {
		return fmt.Errorf("unknown stage %q", stage)
	}
	t := &trial{World: w, name: name}
	runtime.LockOSThread()
	return json.NewEncoder(out).Encode(t.report(do(t, args)))
}

// file returns the file with the world.
func (w *World) file() string { return w.Dir + "/world-" + w.Run + ".json" }

// stage runs a stage in new namespaces. With CLONE_NEWUSER it is root there.
func (t *trial) stage(flags uintptr, stage string, args ...string) error {
	return t.stageWith(t.self(context.Background(), append([]string{"stage", t.file(), t.name, stage}, args...)...), flags)
}

func (t *trial) stageWith(cmd *exec.Cmd, flags uintptr) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags}
	if flags&unix.CLONE_NEWUSER != 0 {
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("stage: %w %.300s", err, stderr.String())
	}
	var r report
	if err := json.Unmarshal(stdout.Bytes(), &r); err != nil {
		return err
	}
	t.found = append(t.found, r.Found...)
	if r.Error != "" {
		return errors.New(r.Error)
	}
	return nil
}
