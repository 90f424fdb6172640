package store

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gofrs/flock"

	"robotsgate/policy/snapshot"
)

// TestUnusable: an unusable folder is a clear error, and not that another gate uses it.
func TestUnusable(t *testing.T) {
	for name, prepare := range map[string]func(t *testing.T, dir string) error{
		"a file in its place": func(t *testing.T, dir string) error { return os.WriteFile(dir, nil, 0o600) },
		"a folder for the lock": func(t *testing.T, dir string) error {
			return os.MkdirAll(filepath.Join(dir, snapshotsDir, "lock"), 0o700)
		},
		"a folder for the data": func(t *testing.T, dir string) error {
			return os.MkdirAll(filepath.Join(dir, snapshotsDir, "00000001.data"), 0o700)
		},
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
	if suffix == ".index" && mode == 0 {
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

// TestSetAsideOld: snapshots of the form of earlier versions are set aside, and everything else stays.
func TestSetAsideOld(t *testing.T) {
	dir := t.TempDir()
	old := map[string]string{"snapshots.db": "an index", "snapshots/ab/abcd": "a body"}
	others := map[string]string{"ca.pem": "a certificate", "gate-id": "an id", "configurations/x.yaml": "a configuration"}
	fill := func(files map[string]string) {
		t.Helper()
		for name, content := range files {
			path := filepath.Join(dir, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
	}
	check := func(where string, files map[string]string) {
		t.Helper()
		for name, want := range files {
			if got, err := os.ReadFile(filepath.Join(where, name)); err != nil || string(got) != want {
				t.Errorf("%s: got %q, %v", name, got, err)
			}
		}
	}
	fill(old)
	fill(others)

	lock := flock.New(filepath.Join(dir, "snapshots.db"), flock.SetFlag(os.O_RDWR))
	if ok, err := lock.TryLock(); !ok || err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, ample, slog.New(slog.DiscardHandler)); !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), dir) {
		t.Errorf("while a gate of an earlier version runs: got %v, want ErrInUse with the folder", err)
	}
	check(dir, old)
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}

	set := answered("one")
	aside := filepath.Join(dir, "old-snapshots")
	d, log := openLogged(t, dir, ample)
	if !strings.Contains(log.String(), aside) || strings.Count(log.String(), "\n") != 1 {
		t.Errorf("log: %s", log)
	}
	save(t, d, map[string]snapshot.Set{origin(1): set})
	d.Close()
	check(aside, old)
	check(dir, others)
	d = openFor(t, dir, ample) // and no second line
	loaded(t, d, origin(1), set)
	d.Close()

	// An earlier version has run again since.
	fill(map[string]string{"snapshots.db": "another index", "snapshots/ab/abcd": "another body"})
	d, log = openLogged(t, dir, ample)
	if log.Len() == 0 {
		t.Error("nothing is logged the second time")
	}
	loaded(t, d, origin(1), set) // what is of the new form stays
	save(t, d, map[string]snapshot.Set{origin(1): set})
	check(aside, old)
	check(dir, others)
}

// TestSetAsideBrokenOff: a start that was killed between its two steps is completed by the next one.
func TestSetAsideBrokenOff(t *testing.T) {
	dir := t.TempDir()
	aside := filepath.Join(dir, "old-snapshots")
	if err := errors.Join(os.MkdirAll(filepath.Join(aside, snapshotsDir), 0o700), os.WriteFile(filepath.Join(dir, "snapshots.db"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	d, log := openLogged(t, dir, ample)
	save(t, d, map[string]snapshot.Set{origin(1): answered("one")})
	if _, err := os.Stat(filepath.Join(aside, "snapshots.db")); err != nil || log.Len() == 0 {
		t.Errorf("%v, log: %s", err, log)
	}
	if _, err := os.Stat(filepath.Join(dir, "snapshots.db")); err == nil {
		t.Error("the old index is still there")
	}
}
