package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"robotsgate/internal/config"
)

// A change counts when the file has come to rest, once, and only if it can be read.
func TestLook(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("a")
	l := newLook(path)
	again := func(want bool, when string) {
		t.Helper()
		if got := l.again(); got != want {
			t.Errorf("%s: %v, want %v", when, got, want)
		}
	}
	again(false, "as it was")
	write("a half")
	again(false, "in the middle")
	write("a half and the other")
	again(false, "grown since")
	again(true, "at rest")
	again(false, "told already")
	write("")
	again(false, "empty")
	again(true, "empty, at rest")
	os.Remove(path)
	again(false, "gone")
	again(false, "still gone")
	write("")
	again(false, "back")
	again(false, "back as it was")
	write("b")
	l.take() // on SIGHUP
	again(false, "taken already")
	write("c")
	again(false, "put back")
	write("b")
	again(false, "put back")
	again(false, "put back, at rest")
	write(string(make([]byte, config.MaxFileBytes+1)))
	again(false, "no configuration")
	again(false, "no configuration, at rest")
}

// What is no file is not read: a pipe would be empty afterwards.
func TestLookAtPipe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	w.WriteString("mode: report")
	l := newLook("/proc/self/fd/" + fmt.Sprint(r.Fd()))
	for range 2 {
		if l.again() {
			t.Error("a pipe has changed")
		}
	}
	data := make([]byte, 100)
	if n, err := r.Read(data); err != nil || string(data[:n]) != "mode: report" {
		t.Errorf("left in the pipe: %q, %v", data[:n], err)
	}
}
