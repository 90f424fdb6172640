package store

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"robotsgate/policy/snapshot"
)

// TestUnusable: an unusable folder is a clear error, and not that another gate uses it.
func TestUnusable(t *testing.T) {
	for name, prepare := range map[string]func(t *testing.T, dir string) error{
		"a file in its place": func(t *testing.T, dir string) error { return os.WriteFile(dir, nil, 0o600) },
		"a folder for the lock": func(t *testing.T, dir string) error {
			return os.MkdirAll(filepath.Join(dir, snapshotsDir, "lock"), 0o700)
		},
		"a folder for the data":   func(t *testing.T, dir string) error { return unreadable(t, dir, ".data", 0) },
		"a folder for the index":  func(t *testing.T, dir string) error { return unreadable(t, dir, ".index", 0) },
		"read only":               func(t *testing.T, dir string) error { return forOthers(t, os.Mkdir(dir, 0o500)) },
		"an index of another one": func(t *testing.T, dir string) error { return forOthers(t, unreadable(t, dir, ".index", 0o400)) },
		"data of another one":     func(t *testing.T, dir string) error { return forOthers(t, unreadable(t, dir, ".data", 0o400)) },
		"a lock of another one":   func(t *testing.T, dir string) error { return forOthers(t, unreadable(t, dir, "lock", 0o000)) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			if err := prepare(t, dir); err != nil {
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
			if errors.Is(err, ErrInUse) {
				t.Errorf("taken for a folder in use: %v", err)
			}
		})
	}
}

// unreadable makes a store and gives one of its files other permissions, or puts a folder in its place if they are 0.
func unreadable(t *testing.T, dir, suffix string, mode os.FileMode) error {
	d := openFor(t, dir, ample)
	save(t, d, map[string]snapshot.Set{origin(1): answered("one")})
	d.Close()
	path := filepath.Join(dir, snapshotsDir, "00000001"+suffix)
	if suffix == "lock" {
		path = filepath.Join(dir, snapshotsDir, suffix)
	}
	if mode == 0 && suffix != "lock" {
		return errors.Join(os.Remove(path), os.Mkdir(path, 0o700))
	}
	return os.Chmod(path, mode)
}

// forOthers skips the test if the user may write everywhere.
func forOthers(t *testing.T, err error) error {
	if os.Geteuid() == 0 {
		t.Skip("root may write everywhere")
	}
	return err
}

// TestEarlierVersion: the first start says that snapshots of the form of earlier versions are not used; everything stays.
func TestEarlierVersion(t *testing.T) {
	dir := t.TempDir()
	files := map[string]string{"snapshots.db": "an index", "snapshots/ab/abcd": "a body", "ca.pem": "a certificate", "configurations/x.yaml": "a configuration"}
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	d, log := openLogged(t, dir, ample)
	if !strings.Contains(log.String(), dir) || strings.Count(log.String(), "\n") != 1 {
		t.Errorf("log: %s", log)
	}
	set := answered("one")
	save(t, d, map[string]snapshot.Set{origin(1): set})
	d.Close()
	d = openFor(t, dir, ample) // and no second line
	loaded(t, d, origin(1), set)
	for name, want := range files {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
}
