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

// A file that is gone for long is told of, once each time.
func TestLookForLost(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	l := newLook(path)
	look := func(times int) (lost int) {
		for range times {
			if l.again(); l.lost() {
				lost++
			}
		}
		return lost
	}
	if n := look(3 * longGone); n != 0 {
		t.Errorf("where there never was one: told %d times", n)
	}
	for range 2 {
		if err := os.WriteFile(path, []byte("mode: report"), 0o600); err != nil {
			t.Fatal(err)
		}
		look(2)
		os.Remove(path)
		if n := look(longGone - 1); n != 0 {
			t.Errorf("gone for a moment: told %d times", n)
		}
		if n := look(3 * longGone); n != 1 {
			t.Errorf("gone for long: told %d times, want 1", n)
		}
	}
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
