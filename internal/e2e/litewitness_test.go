//go:build unix

package e2e

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"robotsgate/internal/gatetest"
)

// A liteWitness is a process of litewitness, a witness of torchwood, started as docs/evidence.md says.
type liteWitness struct {
	t    *testing.T
	dir  string
	know string // the commands that add the log
	line string // the command
	cmd  *exec.Cmd
	log  *gatetest.Output

	url string
	key string // its verifier key
}

// witnessctl stands in for torchwood's command of this name, which can't be built without modules that only sigsum
// needs. It does the same to the database.
const witnessctl = `#!/bin/sh
set -e
[ "$2 $4" = '-origin -key' ] || [ "$2 $4" = '-origin ' ]
case $1 in
add-log) row="INSERT INTO log VALUES ('$3', 0, '47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=')" ;;
add-key) row="INSERT INTO key VALUES ('$3', '$5')" ;;
esac
exec sqlite3 -bail litewitness.db '
CREATE TABLE IF NOT EXISTS log (origin TEXT PRIMARY KEY, tree_size INTEGER NOT NULL, tree_hash TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS key (origin TEXT NOT NULL, key TEXT NOT NULL, FOREIGN KEY(origin) REFERENCES log(origin));' "$row"
`

// startLiteWitness starts a witness that knows the log of a gate's configuration.
func startLiteWitness(t *testing.T, config string) *liteWitness {
	t.Helper()
	for _, program := range []string{"litewitness", "ssh-agent", "sqlite3"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%v: go install -C tools/witness tool installs litewitness, and Debian's packages openssh-client and sqlite3 the others", err)
		}
	}
	dir, err := os.MkdirTemp("", "") // t.TempDir would be too long for the address of a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	w := &liteWitness{t: t, dir: dir}
	gatetest.Write(t, filepath.Join(dir, "bin", "witnessctl"), witnessctl)
	_, block, _ := strings.Cut(gatetest.Read(t, "../../docs/evidence.md"), "```sh\nssh-keygen ")
	block, _, _ = strings.Cut("ssh-keygen "+block, "```")
	lines := strings.Split(strings.ReplaceAll(strings.TrimSpace(block), "gate.yaml", config), "\n")
	last := len(lines) - 1
	w.know = strings.Join(lines[last-2:last], "\n")
	out := w.run(strings.Join(lines[:last], "\n"))
	pid := regexp.MustCompile(`SSH_AGENT_PID=(\d+)`).FindStringSubmatch(out)
	if pid == nil {
		t.Fatalf("the lines of docs/evidence.md print\n%s", out)
	}
	t.Cleanup(func() {
		agent, _ := strconv.Atoi(pid[1])
		syscall.Kill(agent, syscall.SIGTERM)
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	w.url = fmt.Sprintf("http://%s/", l.Addr())
	w.line = "exec " + lines[last] + " -listen " + l.Addr().String()
	w.start()
	t.Cleanup(w.kill)
	_, key, _ := strings.Cut(w.log.String(), "vkey=")
	w.key, _, _ = strings.Cut(key, "\n")
	return w
}

// shell returns a command in the witness's folder.
func (w *liteWitness) shell(command string) *exec.Cmd {
	cmd := exec.Command("sh", "-c", command)
	cmd.Dir = w.dir
	cmd.Env = append(os.Environ(), "PATH="+filepath.Join(w.dir, "bin")+":"+os.Getenv("PATH"))
	return cmd
}

// run runs commands in the witness's folder, and returns what they print.
func (w *liteWitness) run(commands string) string {
	w.t.Helper()
	out, err := w.shell("set -e\n" + commands).CombinedOutput()
	if err != nil {
		w.t.Fatalf("%s\n%v: %s", commands, err, out)
	}
	return string(out)
}

// start starts the process.
func (w *liteWitness) start() {
	w.t.Helper()
	w.cmd, w.log = w.shell(w.line), new(gatetest.Output)
	w.cmd.Stdout, w.cmd.Stderr = w.log, w.log
	if err := w.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.log.WaitFor(w.t, "msg=listening")
}

// kill ends the process as a power cut does.
func (w *liteWitness) kill() {
	w.signal(syscall.SIGKILL)
	_ = w.cmd.Wait() // its error is the signal
}

func (w *liteWitness) signal(s syscall.Signal) {
	w.t.Helper()
	if err := w.cmd.Process.Signal(s); err != nil {
		w.t.Fatal(err)
	}
}

// size returns the size of the log that the witness has cosigned.
func (w *liteWitness) size() int {
	w.t.Helper()
	size, err := strconv.Atoi(strings.TrimSpace(w.run("sqlite3 litewitness.db 'SELECT tree_size FROM log'")))
	if err != nil {
		w.t.Fatal(err)
	}
	return size
}
