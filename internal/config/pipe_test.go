//go:build unix

package config

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A pipe is read once, as a shell's <(command) is; when nobody writes to it, it is a
// mistake and not a wait for ever.
func TestPipes(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	writer, err := os.OpenFile(pipe, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := writer.WriteString("mode: report\n"); err != nil {
		t.Fatal(err)
	}
	// What is written stays as long as somebody has it open.
	reader, err := os.OpenFile(pipe, os.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	writer.Close()
	if c, err := Load(pipe); err != nil || c.Mode != Report {
		t.Errorf("%+v, %v", c, err)
	}
	if _, err := Load(pipe); err == nil || !strings.Contains(err.Error(), "nothing comes out of this pipe") {
		t.Errorf("a second time: %v", err)
	}
	for _, text := range []string{"egress: {ca_file: pipe}", "https: {ca_cert: pipe, ca_key: pipe}"} {
		_, err := Parse(filepath.Join(dir, "gate.yaml"), []byte(text), noEnv)
		if err == nil || !strings.Contains(err.Error(), "is a pipe") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
