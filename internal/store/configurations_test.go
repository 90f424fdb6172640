package store

import (
	"errors"
	"io/fs"
	"os"
	"testing"

	"robotsgate/policy/snapshot"
)

// TestConfigurations: a configuration that was kept is read by its digest, unless it was changed.
func TestConfigurations(t *testing.T) {
	dir := t.TempDir()
	text := "listen: a\n"
	digest := snapshot.Digest(text)
	for range 2 {
		if err := KeepConfiguration(dir, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := ReadConfiguration(dir, digest); string(got) != text || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	file := configurationFile(dir, digest)
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if err := os.WriteFile(file, []byte("listen: x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadConfiguration(dir, digest); !errors.Is(err, snapshot.ErrChanged) {
		t.Errorf("a changed one: %v", err)
	}
	for _, name := range []string{"../x", snapshot.Digest("another")} {
		if _, err := ReadConfiguration(dir, name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
