//go:build unix

package gate

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"robotsgate/policy"
)

// TestPipes: a configuration may be a pipe, such as a shell's <(command). The files that it names
// may not: they are read again.
func TestPipes(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	written := make(chan error, 1)
	go func() { written <- os.WriteFile(pipe, []byte("mode: report\n"), 0o600) }()
	if c, err := LoadConfig(pipe); err != nil || c.Mode != policy.Report {
		t.Errorf("%+v, %v", c, err)
	}
	if err := <-written; err != nil {
		t.Error(err)
	}
	for _, text := range []string{"egress: {ca_file: pipe}", "https: {ca_cert: pipe, ca_key: pipe}", "log: {audit: audit.jsonl, audit_key_file: pipe}"} {
		_, err := ParseConfig(filepath.Join(dir, "gate.yaml"), []byte(text), noEnv)
		if err == nil || !strings.Contains(err.Error(), "a pipe") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
