package e2e

import (
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"robotsgate/internal/gatetest"
)

// systemCall is a line of strace -f -y: a call, with the path of its first file.
var systemCall = regexp.MustCompile(`^(\d+) +(?:<\.\.\. )?(\w+)(?:\(\d+<([^>]*)>)?(.*)`)

// TestLogSynced: at each checkpoint that a gate keeps, the disk has all of the log, and the name of its file. A power cut
// then takes away only records behind the checkpoint.
func TestLogSynced(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("strace is for Linux")
	}
	gatetest.Needs(t, "strace")
	dir := t.TempDir()
	origin := gatetest.ServeFiles(t, "testdata/clients/site", dir)
	gatetest.Write(t, filepath.Join(dir, "gate.yaml"), "listen: 127.0.0.1:0\ndata_dir: data\nadmin: {listen: \"\"}\negress: {allow_private: [127.0.0.0/8]}\nlog: {audit: logs/audit.jsonl}\n")
	cmd := exec.Command("strace", "-D", "-f", "-y", "-o", "trace", "-e", "trace=write,fsync,rename,renameat,renameat2", "robotsgate", "serve", "-c", "gate.yaml")
	cmd.Dir = dir
	gate, err := gatetest.StartGate(cmd, io.Discard, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { gate.Kill() })
	gatetest.Request(t, gatetest.Client(t, gate.Proxy), "GET", "http://"+origin.HTTP+"/page.html", 200)
	if err := gate.Terminate(); err != nil {
		t.Fatal(err)
	}
	trace := filepath.Join(dir, "trace")
	gatetest.Becomes(t, time.Minute, "strace has ended", func() bool { return strings.HasSuffix(gatetest.Read(t, trace), "+++ exited with 0 +++\n") })

	const log = "/logs/audit.jsonl"
	begun := map[string]string{} // by thread: the path of a call that has not returned
	written, synced, named, kept := 0, 0, false, 0
	for line := range strings.Lines(gatetest.Read(t, trace)) {
		call := systemCall.FindStringSubmatch(line)
		if call == nil {
			continue
		}
		thread, path := call[1], call[3]
		if path == "" {
			path = begun[thread]
		}
		if begun[thread] = path; strings.HasSuffix(call[4], "<unfinished ...>\n") && !strings.HasPrefix(call[2], "rename") {
			continue
		}
		switch {
		case call[2] == "write" && strings.HasSuffix(path, log):
			written++
		case call[2] == "fsync" && strings.HasSuffix(path, log):
			synced = written
		case call[2] == "fsync" && strings.HasSuffix(path, filepath.Dir(log)):
			named = true
		case strings.HasPrefix(call[2], "rename") && strings.Contains(call[4], `data/audit-checkpoint"`) && written > 0:
			if kept++; synced < written || !named {
				t.Errorf("a checkpoint is kept after %d writes to the log, and the disk has %d (the file's name: %t)", written, synced, named)
			}
		}
	}
	if kept == 0 {
		t.Errorf("no checkpoint is kept behind a record:\n%s", gatetest.Read(t, trace))
	}
}
