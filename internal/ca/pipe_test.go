//go:build unix

package ca

import (
	"net"
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

// TestSocket: run --confine hides the key of its gate behind a socket. A gate inside says what to do.
func TestSocket(t *testing.T) {
	t.Chdir(t.TempDir()) // the path of a socket must be short
	l, err := net.Listen("unix", "ca-key.pem")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := Load("ca-key.pem", "ca-key.pem"); err == nil || !strings.Contains(err.Error(), "needs another data_dir") {
		t.Errorf("got %v", err)
	}
}
