package ca

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// TestOpenLocked: the error says what to do if the user may not look into the folder, such as another user's home.
func TestOpenLocked(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "locked")
	if err := os.Mkdir(dir, 0); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		syscall.Setfsuid(65534) // of this thread only
		defer syscall.Setfsuid(0)
	}
	_, err := Open(dir)
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "data_dir") || !strings.Contains(err.Error(), "HOME") {
		t.Errorf("got %v", err)
	}
}
