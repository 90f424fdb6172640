package store

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestUnusable: an unusable folder is a clear error.
func TestUnusable(t *testing.T) {
	for name, prepare := range map[string]func(dir string) error{
		"a file in its place": func(dir string) error { return os.WriteFile(dir, nil, 0o600) },
		"a file for the folder": func(dir string) error {
			return errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, snapshotsDir), nil, 0o600))
		},
		"read only": func(dir string) error { return os.Mkdir(dir, 0o500) },
		"read only snapshots": func(dir string) error {
			return errors.Join(os.Mkdir(dir, 0o700), os.Mkdir(filepath.Join(dir, snapshotsDir), 0o500))
		},
	} {
		t.Run(name, func(t *testing.T) {
			if strings.HasPrefix(name, "read only") && os.Geteuid() == 0 {
				t.Skip("root may write everywhere")
			}
			dir := filepath.Join(t.TempDir(), "data")
			if err := prepare(dir); err != nil {
				t.Fatal(err)
			}
			d, err := Open(dir, ample, slog.New(slog.DiscardHandler))
			if err == nil {
				d.Close()
				t.Fatal("no error")
			}
			if !strings.Contains(err.Error(), "check the space and permissions of "+dir) {
				t.Errorf("not clear: %v", err)
			}
		})
	}
}

// TestUnusableLock: a lock that can't be taken is an error, and not that another process is the owner.
func TestUnusableLock(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "lock"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Own(dir); err == nil || !strings.Contains(err.Error(), "check the space and permissions of "+dir) {
		t.Errorf("got %v", err)
	}
}
