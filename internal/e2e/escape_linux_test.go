package e2e

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"robotsgate/internal/confine/attempts"
	"robotsgate/internal/doctor"
	"robotsgate/internal/gatetest"
)

// TestEscapes makes every attempt of doctor --confine, as root and as another user: without confinement, where it must
// succeed, and inside run --confine, where it must not.
func TestEscapes(t *testing.T) {
	longWithoutRace(t)
	t.Parallel()
	for _, user := range []struct {
		name string
		uid  int
	}{{"root", 0}, {"nobody", 65534}} {
		t.Run(user.name, func(t *testing.T) {
			outside := tryEscapes(t, user.uid)
			for i, r := range tryEscapes(t, user.uid, "run", "--confine", "--quiet", "--") {
				switch o := outside[i]; {
				case r.Out:
					t.Errorf("%s got out: it tried to %s", r.Name, r.Tries)
				case o.Skipped != "" && (user.uid != 0 && strings.HasSuffix(r.Name, "-run") || strings.HasPrefix(r.Name, "key-")):
					t.Logf("%s was not tried: %s", r.Name, o.Skipped)
				case !o.Out:
					t.Errorf("%s did not reach its target without confinement: %s %s", r.Name, o.Skipped, o.Seen)
				}
			}
		})
	}
}

// tryEscapes makes the attempts as a user, in namespaces of its own, behind a command of robotsgate.
func tryEscapes(t *testing.T, uid int, command ...string) (results []attempts.Result) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Fatal("this test needs root: it makes namespaces, and becomes another user")
	}
	// The other user cannot read the folder of the tests' programs.
	dir, err := os.MkdirTemp("/tmp", "rg")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path, err := exec.LookPath("robotsgate")
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "robotsgate")
	gatetest.Write(t, program, gatetest.Read(t, path))
	for _, file := range []string{dir, program} {
		if err := os.Chmod(file, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("escapes", append([]string{program, strconv.Itoa(uid)}, command...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWIPC}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	if err := json.Unmarshal(out, &results); err != nil {
		t.Fatal(err)
	}
	return results
}

// escapes is the program escapes PROGRAM UID [COMMAND…], which makes all attempts with the program robotsgate. With a
// COMMAND of it they run behind that.
func escapes() {
	results, err := escape(os.Args[1], os.Args[2], os.Args[3:])
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(results)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func escape(program, user string, command []string) ([]attempts.Result, error) {
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
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_unprivileged_port_start", []byte("0"), 0); err != nil { // for the resolver on port 53
		return nil, err
	}
	uid, err := strconv.Atoi(user)
	if err != nil {
		return nil, err
	}
	if uid != 0 {
		if err := cmp.Or(syscall.Setgroups(nil), syscall.Setgid(uid), syscall.Setuid(uid)); err != nil {
			return nil, err
		}
		// Another process of the user may then take a descriptor of this one, as of any process of the user.
		if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_DUMPABLE, 1, 0); errno != 0 {
			return nil, errno
		}
	}
	outside, err := attempts.Start([]string{program, doctor.AttemptCommand})
	if err != nil {
		return nil, err
	}
	defer outside.Close()
	os.Setenv("HOME", outside.World.Dir)
	if len(command) > 0 {
		command = append([]string{program}, command...)
	}
	cmd := outside.Command(context.Background(), command...)
	cmd.Stderr = os.Stderr
	reports, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	return outside.Results(attempts.All(), reports)
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
