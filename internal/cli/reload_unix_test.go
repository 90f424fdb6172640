//go:build unix

package cli

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestReloadOfPipe: a gate whose configuration came out of a pipe does not wait for the
// pipe again.
func TestReloadOfPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	s := Serve{Configured: Configured{Config: pipe}}
	if _, err := s.reload(); err == nil || !strings.Contains(err.Error(), "is a pipe") {
		t.Errorf("got %v", err)
	}
}
