//go:build unix

package ca

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A pipe without a writer is an error. Opening it would block.
func TestPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "ca.pem")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(pipe, pipe); err == nil || !strings.Contains(err.Error(), "is a pipe") {
		t.Errorf("got %v", err)
	}
}
