package gatetest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// A Gate is a process that runs robotsgate serve.
type Gate struct {
	Proxy string  // http://host:port, from the gate's output
	Admin string  // empty without an admin listener
	CA    string  // path of the CA's certificate
	Log   *Output // what the gate writes to standard error

	cmd    *exec.Cmd
	exited chan struct{} // closed when the process has ended and its output is read
	err    error         // of cmd.Wait; read after exited

	ending atomic.Bool // SIGTERM has been sent
}

// patience is the time limit for operations that are normally fast. The machine may be busy with
// other tests.
const patience = 30 * time.Second

// StartGate runs a command, which must be robotsgate serve, and returns when the gate listens. out
// and errs receive its output.
func StartGate(cmd *exec.Cmd, out, errs io.Writer) (*Gate, error) {
	stdout := new(Output)
	g := &Gate{Log: new(Output), cmd: cmd, exited: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = io.MultiWriter(out, stdout), io.MultiWriter(errs, g.Log)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		g.err = cmd.Wait()
		close(g.exited)
	}()
	tick, late := time.NewTicker(5*time.Millisecond), time.After(patience)
	defer tick.Stop()
	for {
		// The banner is in standard error if audit records go to standard output.
		if text := stdout.String() + g.Log.String(); strings.Contains(text, "To use it, paste this into a shell:\n  ") {
			g.Proxy, g.Admin, g.CA = after(text, " listens on "), after(text, "\nAdmin: "), after(text, "\nCA certificate: ")
			return g, nil
		}
		select {
		case <-tick.C:
		case <-g.exited:
			return nil, fmt.Errorf("the gate ended at start: %v", g.err)
		case <-late:
			g.Kill()
			return nil, errors.New("the gate did not print its address within 30 s")
		}
	}
}

// after returns the rest of a line in text, empty without such a line.
func after(text, begin string) string {
	_, rest, _ := strings.Cut(text, begin)
	line, _, _ := strings.Cut(rest, "\n")
	return line
}

// PID returns the id of the process.
func (g *Gate) PID() int { return g.cmd.Process.Pid }

// Terminate sends SIGTERM, unless it has been sent, and returns how the process ended. A second one would
// end a gate at once that lets its requests finish.
func (g *Gate) Terminate() error {
	if g.ending.Load() {
		return g.Ended()
	}
	return errors.Join(g.Signal(syscall.SIGTERM), g.Ended())
}

// Kill sends SIGKILL, which has the effect of a power cut on the process.
func (g *Gate) Kill() error { return errors.Join(g.Signal(syscall.SIGKILL), g.Ended()) }

// Signal sends a signal and does not wait for its effect. It succeeds if the process has ended.
func (g *Gate) Signal(s syscall.Signal) error {
	if s == syscall.SIGTERM {
		g.ending.Store(true)
	}
	if err := g.cmd.Process.Signal(s); !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// Ended waits for the end of the process and returns how it ended.
func (g *Gate) Ended() error {
	select {
	case <-g.exited:
		return g.err
	case <-time.After(patience):
		g.cmd.Process.Kill()
		return errors.New("the gate did not end within 30 s")
	}
}
