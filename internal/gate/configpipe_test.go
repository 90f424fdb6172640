//go:build unix

package gate

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestPipes: neither a configuration nor a file that it names may be a pipe: they are read again.
func TestPipes(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadConfig(pipe); err == nil || err.Error() != pipe+": is a folder or a pipe: a file is needed" {
		t.Errorf("got %v", err)
	}
	for _, text := range []string{"egress: {ca_file: pipe}", "https: {ca_cert: pipe, ca_key: pipe}", "log: {audit: audit.jsonl, audit_key_file: pipe}"} {
		_, err := ParseConfig(filepath.Join(dir, "gate.yaml"), []byte(text), noEnv)
		if err == nil || !strings.Contains(err.Error(), "pipe") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
