//go:build unix

package keyfile

import (
	"net"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestLoadDoesNotWait: a pipe without a writer, a socket and a device are refused at once.
func TestLoadDoesNotWait(t *testing.T) {
	dir := t.TempDir()
	pipe, socket := filepath.Join(dir, "pipe"), filepath.Join(dir, "s")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for path, kind := range map[string]string{pipe: "a pipe", socket: "a socket", "/dev/zero": "a device"} {
		done := make(chan error, 1)
		go func() {
			_, err := Load(path)
			done <- err
		}()
		select {
		case err := <-done:
			wantError(t, kind, err, path, "not a regular file", "robotsgate keys new ")
		case <-time.After(10 * time.Second):
			t.Fatalf("Load waits for %s", kind)
		}
	}
}
