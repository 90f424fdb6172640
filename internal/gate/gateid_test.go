package gate

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestOwnID: an id lasts, and one that can't be read is replaced.
func TestOwnID(t *testing.T) {
	dir, out := t.TempDir(), new(bytes.Buffer)
	log := slog.New(slog.NewTextHandler(out, nil))
	file := filepath.Join(dir, idFile)
	first := ownID(dir, log)
	if again := ownID(dir, log); again != first || len(first) < 16 || out.Len() > 0 {
		t.Errorf("%q, then %q: %s", first, again, out)
	}
	if info, err := os.Stat(file); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	for _, text := range []string{"", "short", "../../../../etc/passwd", strings.Repeat("a", 65), strings.Repeat("a", 1<<20),
		"two\nlines0123456789", "\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10", strings.Repeat(" ", 1000) + first} {
		out.Reset()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		id := ownID(dir, log)
		if kept, err := ReadID(dir); err != nil || kept != id || id == first {
			t.Errorf("%.30q: got %q, kept %q, %v", text, id, kept, err)
		}
		if n := strings.Count(out.String(), "\n"); n != 1 || !strings.Contains(out.String(), id) {
			t.Errorf("%.30q: %d lines: %s", text, n, out)
		}
	}
	out.Reset()
	if id := ownID(filepath.Join(dir, "none"), log); len(id) < 16 || !strings.Contains(out.String(), "this gate has a new id") {
		t.Errorf("in a folder that can't be written: %q: %s", id, out)
	}
}
