//go:build unix

package audit

import (
	"path/filepath"
	"syscall"
	"testing"
)

// TestKeyFileIsPipe: a pipe is a mistake; reading it would never end.
func TestKeyFileIsPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "key")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if key, err := loadKey(pipe); err == nil {
		t.Errorf("got %v", key)
	}
}
