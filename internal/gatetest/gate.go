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

// A Gate is a process of the real binary that serves.
type Gate struct {
	Proxy string  // http://host:port, as the gate has printed it
	Admin string  // empty if it is turned off
	CA    string  // path of the CA's certificate
	Log   *Output // what the gate writes to standard error, if Serve has started it

	cmd    *exec.Cmd
	exited chan struct{} // closed when the process is gone and its output is read
	err    error         // how it ended; read after exited
}

// patience is how long anything may take that takes no time to speak of. The
// machine may be busy with other tests.
const patience = 30 * time.Second

// StartGate runs cmd, which must be a robotsgate serve, and returns when it
// listens. What it prints goes to out and errs.
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
	b := &banner{said: make(chan struct{})}
	var readers sync.WaitGroup
	readers.Go(func() { b.read(stdout, out) })
	readers.Go(func() { b.read(stderr, errs) }) // the banner is there if stdout is for audit records
	go func() {
		readers.Wait()
		g.err = cmd.Wait()
		close(g.exited)
	}()
	select {
	case <-b.said:
		b.mu.Lock()
		defer b.mu.Unlock()
		g.Proxy, g.Admin, g.CA = b.proxy, b.admin, b.ca
		return g, nil
	case <-g.exited:
		return nil, fmt.Errorf("the gate ended instead of serving: %v", g.err)
	case <-time.After(patience):
		g.Kill()
		return nil, errors.New("the gate does not say that it listens")
	}
}

// A banner is what serve prints when it listens.
type banner struct {
	mu               sync.Mutex
	proxy, admin, ca string
	said             chan struct{} // closed by its last line
}

// read copies what the gate prints line by line, and takes down the banner.
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
		close(b.said)
	}
}

// PID returns the id of the process.
func (g *Gate) PID() int { return g.cmd.Process.Pid }

// Terminate sends SIGTERM and returns how the process ended.
func (g *Gate) Terminate() error { return errors.Join(g.Signal(syscall.SIGTERM), g.Ended()) }

// Kill ends the process with no warning, as a power cut would.
func (g *Gate) Kill() error { return errors.Join(g.Signal(syscall.SIGKILL), g.Ended()) }

// Signal sends a signal and does not wait for what comes of it.
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
		return errors.New("the gate does not end")
	}
}
