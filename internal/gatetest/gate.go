package gatetest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A Gate is a process that runs robotsgate serve.
type Gate struct {
	Proxy string  // http://host:port, from the gate's output
	Admin string  // empty without an admin listener
	CA    string  // path of the CA's certificate
	Log   *Output // what the gate writes to standard error, if Serve has started it

	cmd    *exec.Cmd
	exited chan struct{} // closed when the process has ended and its output is read
	err    error         // of cmd.Wait; read after exited
}

// patience is the time limit for operations that are normally fast. The machine may be busy with
// other tests.
const patience = 30 * time.Second

// StartGate runs a command, which must be robotsgate serve, and returns when the gate listens. out
// and errs receive its output.
func StartGate(cmd *exec.Cmd, out, errs io.Writer) (*Gate, error) {
	g := &Gate{cmd: cmd, exited: make(chan struct{})}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	b := &banner{complete: make(chan struct{})}
	var readers sync.WaitGroup
	readers.Go(func() { b.read(stdout, out) })
	readers.Go(func() { b.read(stderr, errs) }) // the banner is here if audit records go to stdout
	go func() {
		readers.Wait()
		g.err = cmd.Wait()
		close(g.exited)
	}()
	select {
	case <-b.complete:
		b.mu.Lock()
		defer b.mu.Unlock()
		g.Proxy, g.Admin, g.CA = b.proxy, b.admin, b.ca
		return g, nil
	case <-g.exited:
		return nil, fmt.Errorf("the gate ended at start: %v", g.err)
	case <-time.After(patience):
		g.Kill()
		return nil, errors.New("the gate did not print its address within 30 s")
	}
}

// A banner has the addresses that serve prints when it listens.
type banner struct {
	mu               sync.Mutex
	proxy, admin, ca string
	complete         chan struct{} // closed after its last line
}

// read copies the gate's output line by line and parses the banner in it.
func (b *banner) read(from io.Reader, to io.Writer) {
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadString('\n')
		io.WriteString(to, line)
		b.take(strings.TrimSpace(line))
		if err != nil {
			return
		}
	}
}

func (b *banner) take(line string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, address, ok := strings.Cut(line, " listens on "); ok && strings.HasPrefix(line, "robotsgate ") {
		b.proxy = address
	}
	if address, ok := strings.CutPrefix(line, "Admin: "); ok {
		b.admin = address
	}
	if file, ok := strings.CutPrefix(line, "CA certificate: "); ok {
		b.ca = file
	}
	if strings.HasPrefix(line, "export http_proxy=") && b.proxy != "" {
		close(b.complete)
	}
}

// PID returns the id of the process.
func (g *Gate) PID() int { return g.cmd.Process.Pid }

// Terminate sends SIGTERM and returns how the process ended.
func (g *Gate) Terminate() error { return errors.Join(g.Signal(syscall.SIGTERM), g.Ended()) }

// Kill sends SIGKILL, which has the effect of a power cut on the process.
func (g *Gate) Kill() error { return errors.Join(g.Signal(syscall.SIGKILL), g.Ended()) }

// Signal sends a signal and does not wait for its effect. It succeeds if the process has ended.
func (g *Gate) Signal(s syscall.Signal) error {
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
