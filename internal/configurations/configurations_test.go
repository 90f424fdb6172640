package configurations

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"robotsgate/policy/snapshot"
	"strings"
	"testing"
	"time"
)

// TestConfigurations: configurations in use are kept, and others for the time of keep.
func TestConfigurations(t *testing.T) {
	dir := t.TempDir()
	quiet := slog.New(slog.DiscardHandler)
	const keep = 100 * time.Hour
	one, other := Open(dir, keep, quiet), Open(dir, keep, quiet)
	defer one.Close()
	defer other.Close()
	a, b := one.Use([]byte("listen: a\n")), other.Use([]byte("listen: b\n"))
	if again := other.Use([]byte("listen: a\n")); again != a {
		t.Errorf("two names for one configuration: %s, %s", a, again)
	}
	old := time.Now().Add(-2 * keep)
	if err := os.Chtimes(filepath.Join(dir, folder, b+".yaml"), old, old); err != nil {
		t.Fatal(err)
	}
	c := one.Use([]byte("listen: c\n"))
	for digest, want := range map[string]string{a: "listen: a\n", b: "", c: "listen: c\n"} {
		got, err := Read(dir, digest)
		if string(got) != want || (want == "") != errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: got %q, %v; want %q", digest, got, err, want)
		}
	}
	file := filepath.Join(dir, folder, a+".yaml")
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if err := os.WriteFile(file, []byte("listen: x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(dir, a); !errors.Is(err, snapshot.ErrChanged) {
		t.Errorf("a changed one: %v", err)
	}
	if _, err := Read(dir, "../x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no digest: %v", err)
	}
}

// TestConfigurationsFullDisk: a full disk is logged, and not more.
func TestConfigurationsFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, folder), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	c := Open(dir, time.Hour, slog.New(slog.NewTextHandler(&said, nil)))
	defer c.Close()
	if c.Use([]byte("x")) == "" || !strings.Contains(said.String(), "can't be kept as evidence") {
		t.Errorf("log: %q", said.String())
	}
}
