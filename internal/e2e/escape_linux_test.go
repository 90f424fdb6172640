package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"robotsgate/internal/e2e/escapes"
)

// escapeUsers are the users that make the attempts.
var escapeUsers = []struct {
	name string
	uid  int
}{{"root", 0}, {"nobody", 65534}}

// TestEscapesOutside makes every attempt without confinement, where it must succeed: only then do its
// failures inside say something.
func TestEscapesOutside(t *testing.T) {
	longWithoutRace(t)
	t.Parallel()
	cases, kinds := 0, map[string]bool{}
	for _, user := range escapeUsers {
		t.Run(user.name, func(t *testing.T) {
			for _, r := range tryEscapes(t, user.uid) {
				switch {
				case r.Unproven != "" || r.Root && user.uid != 0:
				case r.Skipped != "" && ofKernel(r.Needs):
					t.Logf("%s was not tried: %s", r.Name, r.Skipped)
				case r.Skipped != "":
					t.Errorf("%s was not tried: %s", r.Name, r.Skipped)
				case !r.Out:
					t.Errorf("%s did not reach its target: %s", r.Name, r.Seen)
				default:
					cases, kinds[r.Name] = cases+1, true
				}
			}
		})
	}
	t.Logf("%d kinds of attempts, %d cases", len(kinds), cases)
	if len(kinds) < 120 || cases < 220 {
		t.Errorf("%d kinds of attempts and %d cases are too few", len(kinds), cases)
	}
}

// ofKernel reports whether attempts have needs that a kernel may lack: cgroups of version 1, say.
func ofKernel(needs []string) bool {
	return slices.ContainsFunc(needs, func(need string) bool {
		return slices.Contains([]string{"cgroup", "i386", "io_uring", "udplite", "mptcp", "pidfd handle", "network handle", "terminal", "mqueue"}, need)
	})
}

// TestEscapesConfined makes every attempt from inside run --confine.
func TestEscapesConfined(t *testing.T) {
	longWithoutRace(t)
	t.Parallel()
	for _, user := range escapeUsers {
		t.Run(user.name, func(t *testing.T) {
			stopped := 0
			for _, r := range tryEscapes(t, user.uid, "--confine") {
				switch {
				case r.Out:
					t.Errorf("%s got out: it tried to %s", r.Name, r.Tries)
				case r.Skipped == "":
					stopped++
				}
			}
			t.Logf("%d attempts were stopped", stopped)
		})
	}
}

// tryEscapes makes the attempts as a user, in namespaces of its own, which the targets may change.
func tryEscapes(t *testing.T, uid int, flags ...string) []escapes.Result {
	t.Helper()
	if os.Getuid() != 0 {
		t.Fatal("this test needs root: it makes namespaces, and programs with privileges")
	}
	// The other user can't read the folder of the tests' programs.
	dir, err := os.MkdirTemp("/tmp", "rg")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, program := range []string{"robotsgate", "attempt"} {
		path, err := exec.LookPath(program)
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, program), data, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("escapes", append([]string{dir, strconv.Itoa(uid)}, flags...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWIPC}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	var results []escapes.Result
	if err := json.Unmarshal(out, &results); err != nil {
		t.Fatal(err)
	}
	return results
}

// escapeAll is the program escapes DIR UID [FLAG…], which makes all attempts with the programs in DIR. With flags they
// run behind robotsgate run FLAG….
func escapeAll() {
	results, err := escape(os.Args[1], os.Args[2], os.Args[3:])
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(results)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// attempt is the program that makes one attempt, or is a process outside.
func attempt() {
	if err := escapes.Main(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func escape(dir, user string, flags []string) ([]escapes.Result, error) {
	for _, line := range []string{
		"link set lo up",
		"link add veth0 type veth peer name veth1",
		"address add 192.0.2.83/24 dev veth0",
		"address add fd83::2/64 dev veth0 nodad",
		"link set veth0 up", "link set veth1 up",
		"route add default dev veth0",
	} {
		if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("ip %s: %w %s", line, err, out)
		}
	}
	// The link-local address is tentative at first.
	for range 100 {
		out, err := exec.Command("ip", "-6", "address", "show", "tentative").Output()
		if err == nil && len(out) == 0 {
			break
		}
		time.Sleep(50 * time.Millisecond) // real time: the kernel looks for another host with it
	}
	uid, err := strconv.Atoi(user)
	if err != nil {
		return nil, err
	}
	outside, err := escapes.Start([]string{filepath.Join(dir, "attempt")}, uid)
	if err != nil {
		return nil, err
	}
	defer outside.Close()
	var confine []string
	if len(flags) > 0 {
		config := filepath.Join(outside.World.Dir, "config.yaml")
		if err := os.WriteFile(config, []byte(outside.Config()), 0o644); err != nil {
			return nil, err
		}
		confine = append([]string{filepath.Join(dir, "robotsgate"), "run", "-c", config, "--ports", outside.Ports()}, append(flags, "--")...)
	}
	return outside.Try(confine, os.Stderr)
}

// TestConfinedStreams has standard streams by which the command could get out: a TCP connection, which
// it could connect anew, and a folder, in which no socket is hidden.
func TestConfinedStreams(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	socket, err := conn.(*net.TCPConn).File()
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	folder, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	for _, c := range []struct {
		name   string
		stdin  *os.File
		flags  []string
		status int
		stderr string
	}{
		{"TCP", socket, nil, 125, "cannot pass on standard input: it is a network socket"},
		{"folder", folder, nil, 125, "cannot pass on standard input: it is a folder"},
		{"TCP that the user permits", socket, []string{"--keep-fd", "0"}, 7, "no request"},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := append([]string{"run", "--confine"}, c.flags...)
			cmd := exec.Command("robotsgate", append(args, "--", "sh", "-c", "exit 7")...)
			cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
			cmd.Stdin = c.stdin
			out, err := cmd.CombinedOutput()
			if status := cmd.ProcessState.ExitCode(); status != c.status || !strings.Contains(string(out), c.stderr) {
				t.Errorf("got %v, status %d, %s; want status %d, %s", err, status, out, c.status, c.stderr)
			}
		})
	}
}
