//go:build unix

package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"robotsgate/internal/gatetest"
)

// A screen is a terminal. It keeps the lines as they look after overwriting and erasing.
type screen struct {
	width int

	mu      sync.Mutex
	lines   []string // complete lines
	last    []byte
	at      int
	escape  []byte
	colours int             // escape sequences for colours
	seen    strings.Builder // all bytes received
	strange string          // an escape sequence that the program should not send
	changed chan struct{}   // holds one
}

// colours are the escape sequences that begin and end red and yellow text.
var colours = []string{"\x1b[31m", "\x1b[33m", "\x1b[0m"}

func newScreen(width int) *screen { return &screen{width: width, changed: make(chan struct{}, 1)} }

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen.Write(p)
	for _, c := range p {
		s.put(c)
	}
	select {
	case s.changed <- struct{}{}:
	default:
	}
	return len(p), nil
}

func (s *screen) put(c byte) {
	switch {
	case len(s.escape) > 0 || c == '\x1b':
		s.escape = append(s.escape, c)
		switch {
		case string(s.escape) == "\x1b[K":
			s.last, s.escape = s.last[:min(s.at, len(s.last))], nil
		case slices.Contains(colours, string(s.escape)):
			s.colours, s.escape = s.colours+1, nil
		case !slices.ContainsFunc(append(colours, "\x1b[K"), func(known string) bool { return strings.HasPrefix(known, string(s.escape)) }):
			s.strange, s.escape = fmt.Sprintf("%q", s.escape), nil
		}
	case c == '\r':
		s.at = 0
	case c == '\n':
		s.lines, s.last, s.at = append(s.lines, string(s.last)), nil, 0
	case s.at < len(s.last):
		s.last[s.at] = c
		s.at++
	default:
		s.last = append(s.last, c)
		s.at++
	}
}

// text returns everything received.
func (s *screen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen.String()
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
	if err := pty.Setsize(master, &pty.Winsize{Rows: 24, Cols: uint16(s.width)}); err != nil {
		t.Fatal(err)
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

// finalLines returns the lines of the screen. The command must have ended.
func (s *screen) finalLines(t *testing.T) []string {
	t.Helper()
	if s.strange != "" {
		t.Errorf("the terminal received the escape sequence %s", s.strange)
	}
	if len(s.last) > 0 {
		t.Errorf("the last line has no line break: %q", s.last)
	}
	return s.lines
}

// TestProgressOfServe: on a terminal, serve keeps a summary below its log.
func TestProgressOfServe(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "gate.yaml")
	gatetest.Write(t, file, "listen: 127.0.0.1:0\ndata_dir: data\nadmin: {listen: \"\"}\nlog: {level: debug, audit: \"-\"}\n")
	s := newScreen(60)
	cmd := exec.Command("robotsgate", "serve", "-c", file)
	cmd.Env = append(os.Environ(), "TERM=xterm")
	wait := s.start(t, cmd)
	s.shows(t, `export http_proxy`)
	s.shows(t, `\r0 requests \(0/s\), 0 denied, 0 origins\x1b\[K`)
	client := gatetest.Client(t, gatetest.Matches(`listens on (http://\S+)`, s.text())[0])
	for range 20 { // each adds lines of the log, a line of its own and one of the audit log above the summary
		gatetest.Request(t, client, http.MethodGet, "http://192.0.2.1/", http.StatusForbidden)
	}
	s.shows(t, `\r20 requests \(\d+/s\), 20 denied, 0 origins; denied by [^\x1b]*\x1b\[K`)
	for n := range 3 {
		if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		s.shows(t, fmt.Sprintf(`(?s)(has been reloaded.*){%d}`, n+1))
	}
	// One more, which the gate is still reading when it ends.
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	lines := s.finalLines(t)
	summary := regexp.MustCompile(`^20 requests \(\d+/s\), 20 denied, 0 origins; denied by .*$`)
	if last := lines[len(lines)-1]; !summary.MatchString(last) {
		t.Errorf("the last line is %q, want a summary of 20 requests", last)
	}
	whole := regexp.MustCompile(`^(time=\S+ level=[A-Z]+ msg=.*|\{"(time|checkpoint)":.*\}|robotsgate .* listens on .*|CA certificate: .*|To use it, .*|  export .*|\d\d:\d\d:\d\d  refused  default  GET http://192\.0\.2\.1/  address 192\.0\.2\.1 .*)$`)
	audited, refused := 0, 0
	for _, line := range lines[:len(lines)-1] {
		if !whole.MatchString(line) {
			t.Errorf("not a whole line of output: %q", line)
		}
		if strings.HasPrefix(line, `{"time":`) {
			audited++
		}
		if strings.Contains(line, "  refused  ") {
			refused++
		}
	}
	if refused != 20 {
		t.Errorf("got %d whole lines of refused requests, want 20", refused)
	}
	if audited < 20 {
		t.Errorf("got %d whole audit records, want 20", audited)
	}
	for line := range strings.SplitSeq(s.text(), "\r") {
		if text, ok := strings.CutSuffix(line, "\x1b[K"); ok && len(text) >= s.width {
			t.Errorf("the summary has %d characters, the terminal %d columns: %q", len(text), s.width, text)
		}
	}
}

// TestNoProgressOnDumbTerminal: a terminal that cannot move its cursor receives no summary.
func TestNoProgressOnDumbTerminal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "gate.yaml")
	gatetest.Write(t, file, "listen: 127.0.0.1:0\ndata_dir: data\nadmin: {listen: \"\"}\nlimits: {shutdown_delay: 2s}\n")
	s := newScreen(80)
	cmd := exec.Command("robotsgate", "serve", "-c", file)
	cmd.Env = append(os.Environ(), "TERM=dumb")
	wait := s.start(t, cmd)
	s.shows(t, `export http_proxy`)
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := wait(); err != nil { // after shutdown_delay
		t.Fatal(err)
	}
	if lines := s.finalLines(t); strings.Contains(s.text(), "\x1b") || slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, "denied") }) {
		t.Errorf("got %q", lines)
	}
}

// TestNoProgressInBackground: a gate in the background writes its log to the terminal but no
// summary.
func TestNoProgressInBackground(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	gatetest.Write(t, filepath.Join(dir, "gate.yaml"), "listen: 127.0.0.1:0\ndata_dir: data\nadmin: {listen: \"\"}\nlimits: {shutdown_delay: 2s}\n")
	for _, test := range []struct {
		name, script string
		summary      bool
	}{
		{"in the background", "set -m; robotsgate serve -c gate.yaml & read line; kill $!; wait $!", false},
		{"in the foreground", "exec robotsgate serve -c gate.yaml", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newScreen(80)
			in, out, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			defer out.Close()
			cmd := exec.Command("sh", "-c", test.script)
			cmd.Dir, cmd.Stdin = dir, in
			cmd.Env = append(os.Environ(), "TERM=xterm")
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 2} // standard error
			wait := s.start(t, cmd)
			s.shows(t, `export http_proxy`)
			if test.summary {
				s.shows(t, ` 0 origins\x1b\[K`)
				if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
					t.Fatal(err)
				}
			} else {
				fmt.Fprintln(out) // the script sends SIGTERM
			}
			s.shows(t, `still accepting`)
			_ = wait() // the shell's exit status does not matter
			if got := strings.Contains(s.text(), "origins"); got != test.summary {
				t.Errorf("summary: got %v, want %v:\n%q", got, test.summary, s.text())
			}
		})
	}
}

// TestProgressOfLogs: on a terminal, commands that read audit logs show their progress and erase it at the end. Standard
// input stays open until the test has seen the progress.
func TestProgressOfLogs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	g := gatetest.Serve(t, dir, "listen: 127.0.0.1:0\ndata_dir: data\nadmin: {listen: \"\"}\nlog: {audit: audit.jsonl}\n")
	gatetest.Request(t, gatetest.Client(t, g.Proxy), http.MethodGet, "http://192.0.2.1/", http.StatusForbidden)
	if err := g.Terminate(); err != nil {
		t.Fatal(err)
	}
	log := gatetest.Read(t, filepath.Join(dir, "audit.jsonl"))
	for _, args := range [][]string{
		{"audit", "--verify"}, {"audit", "--replay"}, {"audit"},
	} {
		t.Run(strings.Join(args[:min(len(args), 2)], " "), func(t *testing.T) {
			t.Parallel()
			s := newScreen(80)
			cmd := exec.Command("robotsgate", append(args, "-c", filepath.Join(dir, "gate.yaml"), "-")...)
			cmd.Dir, cmd.Env = dir, append(os.Environ(), "TERM=xterm")
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			cmd.Stdout = &out
			wait := s.start(t, cmd)
			if _, err := io.WriteString(in, log); err != nil {
				t.Fatal(err)
			}
			s.shows(t, `\r\d+ lines \(\d+/s\)\x1b\[K`)
			in.Close()
			_ = wait() // a replay without a decision can check nothing
			if out.Len() == 0 {
				t.Error("no result")
			}
			for _, line := range s.finalLines(t) {
				if strings.Contains(line, "/s)") {
					t.Errorf("the command leaves %q on the terminal", line)
				}
			}
		})
	}
}

// TestProgressOfBatch: on a terminal, a batch shows its progress and erases it at the end. The
// test reads no answers before it has seen the progress, so that the batch cannot end earlier.
func TestProgressOfBatch(t *testing.T) {
	const lines = 20_000
	file := filepath.Join(t.TempDir(), "batch.jsonl")
	gatetest.Write(t, file, strings.Repeat(`{"robots": "User-agent: *\nDisallow: /private/\n", "url": "http://a.example/private/x", "product_token": "ExampleBot"}`+"\n", lines))
	for _, test := range []struct {
		name, progress string
		stdin          func(t *testing.T) io.Reader
	}{
		{"a file", `\r\d+ lines, \d+% \(\d+/s\)\x1b\[K`, func(t *testing.T) io.Reader {
			in, err := os.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { in.Close() })
			return in
		}},
		{"a pipe", `\r\d+ lines \(\d+/s\)\x1b\[K`, func(t *testing.T) io.Reader { return strings.NewReader(gatetest.Read(t, file)) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newScreen(80)
			cmd := exec.Command("robotsgate", "check", "--batch")
			cmd.Env = append(os.Environ(), "TERM=xterm")
			cmd.Stdin = test.stdin(t)
			answers, out, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer answers.Close()
			cmd.Stdout = out
			wait := s.start(t, cmd)
			out.Close()
			s.shows(t, test.progress)
			data, err := io.ReadAll(answers)
			if err != nil {
				t.Fatal(err)
			}
			if err := wait(); err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(data), `{"allowed":false,`); n != lines {
				t.Errorf("got %d answers, want %d", n, lines)
			}
			if left := s.finalLines(t); len(left) > 0 {
				t.Errorf("the batch leaves %q on the terminal", left)
			}
		})
	}
}

// TestServeEndsWithTerminal: serve ends after its window is closed, and the terminal with it.
func TestServeEndsWithTerminal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	gatetest.Write(t, filepath.Join(dir, "gate.yaml"), "listen: 127.0.0.1:0\ndata_dir: data\nadmin: {listen: \"\"}\nlimits: {shutdown_delay: 1ms}\n")
	master, slave, err := pty.Open()
	if err != nil {
		t.Skipf("this system has no pseudo-terminals: %v", err)
	}
	cmd := exec.CommandContext(t.Context(), "robotsgate", "serve", "-c", "gate.yaml")
	cmd.Dir, cmd.Stderr, cmd.Stdout = dir, slave, slave
	cmd.Env = append(os.Environ(), "TERM=dumb")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	for shown := bufio.NewScanner(master); !strings.Contains(shown.Text(), "export http_proxy"); {
		if !shown.Scan() {
			t.Fatal(shown.Err())
		}
	}
	master.Close()
	if err := cmd.Wait(); err != nil { // if the gate does not end, the test does not
		t.Errorf("serve ends with %v", err)
	}
}
