//go:build linux

package e2e

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"robotsgate/internal/gatetest"
)

// listener is a program that binds a Unix socket and listens on it. Its arguments are what it executes before
// and after, and the name of the socket.
const listener = `
import os, socket, sys
before, after, name = sys.argv[1:]
exec(before)
s = socket.socket(socket.AF_UNIX)
s.bind(name)
s.listen()
exec(after)
print("listening", flush=True)
sys.stdin.read()
`

// TestConfinedLostSockets has servers of another user whose sockets are not at the paths to which they were
// bound. The command can't reach them, or is not started.
func TestConfinedLostSockets(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can start a server of another user")
	}
	asConfinedUsers(t, func(t *testing.T, u *confinedUser) {
		dir, err := os.MkdirTemp("/var/tmp", "lost")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		deep := filepath.Join(dir, "1/2/3/4/5/6/7/8")
		mode(t, 0o755, dir)
		mode(t, 0o755, deep, filepath.Join(dir, "bound"), filepath.Join(dir, "closed"))
		gatetest.Needs(t, "/usr/bin/python3")
		for _, c := range []struct {
			name, bound   string
			before, after string
			at            string // where the socket is then
		}{
			{name: "relative", bound: "a.sock", at: deep + "/a.sock"},
			{name: "absolute, in a deep folder", bound: deep + "/b.sock", at: deep + "/b.sock"},
			{name: "left folder", bound: "c.sock", after: `os.chdir("/")`, at: deep + "/c.sock"},
			{name: "chroot", bound: "/2/3/4/5/6/7/8/d.sock", before: fmt.Sprintf("os.chroot(%q)", dir+"/1"), at: deep + "/d.sock"},
			{name: "renamed", bound: dir + "/bound/e.sock", after: fmt.Sprintf("os.rename(name, %q)", deep+"/e.sock"), at: deep + "/e.sock"},
			{name: "renamed out of a closed folder", bound: dir + "/closed/f.sock", after: fmt.Sprintf("os.rename(name, %q); os.chmod(%q, 0o700)", deep+"/f.sock", dir+"/closed"), at: deep + "/f.sock"},
			{name: "gunicorn", bound: "g.sock", at: deep + "/g.sock"},
		} {
			t.Run(c.name, func(t *testing.T) {
				cmd := exec.Command("/usr/bin/python3", "-c", listener, c.before, "os.chmod(name, 0o777);"+c.after, c.bound)
				cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{}} // chroot(2) needs root
				if c.name == "gunicorn" {
					const gunicorn = "/usr/bin/gunicorn"
					gatetest.Needs(t, gunicorn)
					gatetest.Write(t, filepath.Join(deep, "app.py"), gunicornApp)
					cmd = exec.Command(gunicorn, "--umask", "0", "--bind", "unix:"+c.bound, "app:app")
				}
				cmd.Dir = deep
				startListener(t, cmd)
				connect := python(fmt.Sprintf(`s.socket(s.AF_UNIX).connect(%q); print("connected")`, c.at))
				outside := exec.CommandContext(t.Context(), "sh", "-c", connect)
				outside.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(u.id), Gid: uint32(u.id)}}
				if out, err := outside.CombinedOutput(); !bytes.Contains(out, []byte("connected")) {
					t.Fatalf("outside: %v: %s", err, out)
				}
				if out, status := u.run(t, connect); status == 125 || !strings.Contains(out, "ConnectionRefusedError") {
					t.Errorf("got %q and status %d, want the connection refused", out, status)
				}
			})
		}
	})
}

// TestConfinedUnlistedFolders has sockets in a folder that the user may use, but not list.
func TestConfinedUnlistedFolders(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can start a server of another user")
	}
	gatetest.Needs(t, "/usr/bin/python3")
	u := confinedUser{name: "unprivileged", id: 65534}
	u.prepare(t)
	dir := filepath.Join(u.dir, "unlisted")
	mode(t, 0o755, filepath.Join(dir, "below"))
	mode(t, 0o711, dir)
	server := func(t *testing.T, after string) {
		t.Cleanup(func() { os.Remove(filepath.Join(dir, "below", "lost.sock")) })
		cmd := exec.Command("/usr/bin/python3", "-c", listener, "", "os.chmod(name, 0o777);"+after, "lost.sock")
		cmd.Dir = filepath.Join(dir, "below")
		startListener(t, cmd)
	}
	connect := python(fmt.Sprintf(`s.socket(s.AF_UNIX).connect(%q)`, dir+"/below/lost.sock"))
	t.Run("hidden", func(t *testing.T) {
		server(t, "")
		if out, status := u.run(t, connect); status != 1 || !strings.Contains(out, "FileNotFoundError") {
			t.Errorf("got %q and status %d, want no such file", out, status)
		}
	})
	t.Run("needed", func(t *testing.T) {
		server(t, "")
		cmd := u.command(t, "true")
		cmd.Env = append(cmd.Env, "HOME="+dir)
		out, _ := cmd.CombinedOutput()
		want := `(?s)cannot find the file of the Unix socket "lost.sock" of a process of the user root, .*Let this user list the folder; or stop the process`
		if cmd.ProcessState.ExitCode() != 125 || !regexp.MustCompile(want).Match(out) {
			t.Errorf("got status %d and %q, want 125 and %s", cmd.ProcessState.ExitCode(), out, want)
		}
	})
	t.Run("removed", func(t *testing.T) {
		mode(t, 0o755, dir)
		server(t, "os.remove(name)")
		if out, status := u.run(t, "echo started"); status != 0 || !strings.HasPrefix(out, "started") {
			t.Errorf("got %q and status %d, want it started", out, status)
		}
	})
}

// startListener starts a server, and waits until it listens.
func startListener(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	in, err := cmd.StdinPipe() // the server ends when this is closed
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	var seen []string
	for lines.Scan() {
		seen = append(seen, lines.Text())
		if strings.Contains(strings.ToLower(lines.Text()), "listening") {
			return
		}
	}
	t.Fatalf("the server does not listen: %q", seen)
}

// mode makes folders with these permissions.
func mode(t *testing.T, mode os.FileMode, dirs ...string) {
	t.Helper()
	for _, dir := range dirs {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
	}
}
