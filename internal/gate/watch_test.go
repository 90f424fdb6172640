package gate

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"robotsgate/internal/field"
)

// TestPoll: a change counts once, when two reads in a row find it, and only if the file
// can be read.
func TestPoll(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("a")
	f := Watch(path)
	again := func(want bool, when string) {
		t.Helper()
		if got := f.poll(); got != want {
			t.Errorf("%s: %v, want a change: %v", when, got, want)
		}
	}
	again(false, "as it was")
	write("a half")
	again(false, "in the middle")
	write("a half and the other")
	again(false, "grown since")
	again(true, "settled")
	again(false, "reported already")
	write("")
	again(false, "empty")
	again(true, "empty, settled")
	os.Remove(path)
	again(false, "gone")
	again(false, "still gone")
	write("")
	again(false, "back")
	again(false, "back as it was")
	write("b")
	f.use() // on SIGHUP
	again(false, "used already")
	write("c")
	again(false, "put back")
	write("b")
	again(false, "put back")
	again(false, "put back, settled")
	write(string(make([]byte, field.MaxFileBytes+1)))
	again(false, "no configuration")
	again(false, "no configuration, settled")
}

// TestPollPipe: a pipe is not read, since it would be empty afterwards.
func TestPollPipe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	w.WriteString("mode: report")
	f := Watch("/proc/self/fd/" + fmt.Sprint(r.Fd()))
	for range 2 {
		if f.poll() {
			t.Error("a pipe has changed")
		}
	}
	data := make([]byte, 100)
	if n, err := r.Read(data); err != nil || string(data[:n]) != "mode: report" {
		t.Errorf("left in the pipe: %q, %v", data[:n], err)
	}
}
