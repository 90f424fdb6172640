//go:build unix

package e2e

import (
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"

	"robotsgate/internal/gatetest"
)

// A screen is a terminal. It keeps the text that it receives.
type screen struct {
	mu      sync.Mutex
	seen    strings.Builder
	changed chan struct{} // holds one
}

func newScreen() *screen { return &screen{changed: make(chan struct{}, 1)} }

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen.Write(p)
	select {
	case s.changed <- struct{}{}:
	default:
	}
	return len(p), nil
}

// text returns everything received.
func (s *screen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen.String()
}

// lines returns the lines received.
func (s *screen) lines() []string {
	return strings.Split(strings.TrimSuffix(s.text(), "\r\n"), "\r\n")
}

// shows waits until a pattern matches the text received.
func (s *screen) shows(t *testing.T, pattern string) {
	t.Helper()
	late := time.After(30 * time.Second)
	for {
		seen := s.text()
		if regexp.MustCompile(pattern).MatchString(seen) {
			return
		}
		select {
		case <-s.changed:
		case <-late:
			t.Fatalf("the terminal did not receive %q within 30 s:\n%q", pattern, seen)
		}
	}
}

// start runs a command with the screen as its standard error, and as its standard output if that
// is not set.
func (s *screen) start(t *testing.T, cmd *exec.Cmd) (wait func() error) {
	t.Helper()
	master, slave, err := pty.Open()
	if err != nil {
		t.Skipf("this system has no pseudo-terminals: %v", err)
	}
	if cmd.Stdout == nil {
		cmd.Stdout = slave
	}
	cmd.Stderr = slave
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(s, master) // ends with EIO when all processes have closed the other end
	}()
	wait = sync.OnceValue(func() error {
		err := cmd.Wait()
		<-read
		master.Close()
		return err
	})
	t.Cleanup(func() { cmd.Process.Kill(); wait() })
	return wait
}

// TestProgressOfAudit: on a terminal, audit shows how much it has read, and erases that at the end. Standard input
// stays open until the test has seen the progress.
func TestProgressOfAudit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	g := gatetest.Serve(t, dir, "listen: 127.0.0.1:0\ndata_dir: data\nadmin: {listen: \"\"}\nlog: {audit: audit.jsonl}\n")
	gatetest.Request(t, gatetest.Client(t, g.Proxy), http.MethodGet, "http://192.0.2.1/", http.StatusForbidden)
	if err := g.Terminate(); err != nil {
		t.Fatal(err)
	}
	s := newScreen()
	cmd := exec.Command("robotsgate", "audit", "-")
	cmd.Dir = dir
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	cmd.Stdout = &out
	wait := s.start(t, cmd)
	log := gatetest.Read(t, filepath.Join(dir, "audit.jsonl"))
	if _, err := io.WriteString(in, log); err != nil {
		t.Fatal(err)
	}
	s.shows(t, `0 MiB\r`)
	in.Close()
	if err := wait(); err != nil || out.Len() == 0 || !strings.HasSuffix(s.text(), "\r\x1b[K") {
		t.Errorf("%v, result %q, on the terminal %q", err, out.String(), s.text())
	}
}
