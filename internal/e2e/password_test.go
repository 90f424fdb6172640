//go:build unix

package e2e

import (
	"io"
	"os/exec"
	"reflect"
	"strings"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/crypto/bcrypt"
	"golang.org/x/term"

	"robotsgate/internal/gatetest"
)

// TestHashPasswordOnTerminal: hash-password asks twice, shows nothing of what is typed, and leaves
// the terminal as it was.
func TestHashPasswordOnTerminal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		first, second string // typed
		shown         string
		status        int
	}{
		{"the same twice", "correct-horse\r", "correct-horse\r", `\$2a\$10\$\S{53}\r\n`, 0},
		{"corrected", "correct-hound\x7f\x7f\x7frse\r", "correct-horse\r", `\$2a\$10\$\S{53}\r\n`, 0},
		{"different", "correct-horse\r", "correct-hound\r", "the two passwords differ\r\n", 2},
		{"interrupted", "correct-\x03", "", "the input ended before the password\r\n", 2},
		{"nothing", "\r", "\r", "the password is empty\r\n", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			master, slave, err := pty.Open()
			if err != nil {
				t.Skipf("this system has no pseudo-terminals: %v", err)
			}
			defer master.Close()
			before, err := term.GetState(int(slave.Fd()))
			if err != nil {
				t.Fatal(err)
			}
			s := newScreen()
			cmd := exec.Command("robotsgate", "hash-password")
			cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { cmd.Process.Kill() })
			read := make(chan struct{})
			go func() {
				defer close(read)
				_, _ = io.Copy(s, master) // ends with EIO when all processes have closed the other end
			}()
			s.shows(t, "^Password: ")
			io.WriteString(master, c.first)
			if c.second != "" {
				s.shows(t, "The same again: ")
				io.WriteString(master, c.second)
			}
			_ = cmd.Wait()
			if status := cmd.ProcessState.ExitCode(); status != c.status {
				t.Errorf("exit status %d, want %d", status, c.status)
			}
			after, err := term.GetState(int(slave.Fd()))
			if err != nil || !reflect.DeepEqual(before, after) {
				t.Errorf("the terminal was left in another state: %v", err)
			}
			slave.Close()
			<-read
			s.shows(t, c.shown)
			if strings.Contains(s.text(), "corr") {
				t.Errorf("the terminal shows the password: %q", s.text())
			}
			for _, hash := range gatetest.Matches(`(\$2a\$\S+)`, s.text()) {
				if err := bcrypt.CompareHashAndPassword([]byte(hash), []byte("correct-horse")); err != nil {
					t.Errorf("%s: %v", hash, err)
				}
			}
		})
	}
}
