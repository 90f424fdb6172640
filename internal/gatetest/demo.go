package gatetest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
)

// A Demo is a process that runs robotsgate demo without a command.
type Demo struct {
	Output
	Paste string // the line to paste into a shell
	Proxy string // http://host:port
	Dir   string // of the gate's files
	Admin string // the link to the status page
}

// ServeDemo runs robotsgate demo until the test ends, when a SIGINT must end the process without an
// error, and without a file left.
func ServeDemo(t testing.TB) *Demo {
	t.Helper()
	tmp := t.TempDir()
	cmd := exec.Command("robotsgate", "demo")
	d := new(Demo)
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), "TMPDIR="+tmp, "HOME="+tmp), d, d
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGINT) // it may have ended
		if err := cmd.Wait(); err != nil {
			t.Errorf("robotsgate demo ended with %v:\n%s", err, d)
		}
		if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
			t.Errorf("robotsgate demo left %v, %v", left, err)
		}
	})
	d.WaitFor(t, `For other browsers: .*\n`)
	for field, pattern := range map[*string]string{
		&d.Paste: `(?m)^  (\. .*)$`, &d.Proxy: `^A gate runs at (\S+),`, &d.Admin: `(?m)^Status page: (\S+)$`,
	} {
		m := regexp.MustCompile(pattern).FindStringSubmatch(d.String())
		if m == nil {
			t.Fatalf("nothing matches %s in\n%s", pattern, d)
		}
		*field = m[1]
	}
	d.Dir = filepath.Dir(d.Paste[len(". "):])
	return d
}

// Shell returns a command of sh that pastes the line first, with a folder as its HOME.
func (d *Demo) Shell(command, home string) *exec.Cmd {
	cmd := exec.Command("sh", "-c", d.Paste+"\n"+command)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "GORACE=" + os.Getenv("GORACE")}
	return cmd
}
