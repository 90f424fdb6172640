package store

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"robotsgate/policy"
)

func TestInUse(t *testing.T) {
	dir := t.TempDir()
	d, _ := open(t, dir)
	save(t, d, map[string]policy.Record{"https://a.example": failed(1)})
	if _, err := Open(dir, ample, slog.New(slog.DiscardHandler)); !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), dir) {
		t.Errorf("got %v, want ErrInUse with the path", err)
	}
	d.Close()
	d, _ = open(t, dir)
	if _, ok := d.Load(t.Context(), "https://a.example"); !ok {
		t.Error("the record is gone")
	}
}

// TestUnusable: an unusable folder is a clear error, and no index is set aside.
func TestUnusable(t *testing.T) {
	for name, prepare := range map[string]func(t *testing.T, dir string){
		"a file in its place": func(t *testing.T, dir string) {
			if err := os.WriteFile(dir, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"a folder in the index's": func(t *testing.T, dir string) {
			if err := os.MkdirAll(filepath.Join(dir, indexFile), 0o700); err != nil {
				t.Fatal(err)
			}
		},
		"read only": func(t *testing.T, dir string) {
			if os.Geteuid() == 0 {
				t.Skip("root may write everywhere")
			}
			if err := os.Mkdir(dir, 0o500); err != nil {
				t.Fatal(err)
			}
		},
		"index read only": func(t *testing.T, dir string) {
			if os.Geteuid() == 0 {
				t.Skip("root may write everywhere")
			}
			d, _ := open(t, dir)
			d.Close()
			if err := os.Chmod(filepath.Join(dir, indexFile), 0o400); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			prepare(t, dir)
			d, err := Open(dir, ample, slog.New(slog.DiscardHandler))
			if err == nil {
				d.Close()
				t.Fatal("no error")
			}
			if !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "check the space and permissions of "+dir) {
				t.Errorf("not clear: %v", err)
			}
			if aside, _ := filepath.Glob(filepath.Join(dir, "*corrupt*")); len(aside) > 0 {
				t.Errorf("set aside: %q", aside)
			}
		})
	}
}

// TestDamaged: a full disk is not damage.
func TestDamaged(t *testing.T) {
	for _, err := range []error{
		&fs.PathError{Op: "write", Path: "snapshots.db", Err: syscall.ENOSPC},
		&fs.PathError{Op: "open", Path: "snapshots.db", Err: syscall.EACCES},
		fmt.Errorf("mmap error: %w", syscall.ENOMEM),
		syscall.ENOLCK,
	} {
		if damaged(withAdvice(err, "data")) {
			t.Errorf("%v is taken for damage", err)
		}
	}
	if !damaged(errors.New("invalid database")) {
		t.Error("damage is not recognised")
	}
}

// TestSaveFails: a failed save is an error, and the record before is still there.
func TestSaveFails(t *testing.T) {
	dir := t.TempDir()
	d, _ := open(t, dir)
	rec := good("User-agent: *\n")
	save(t, d, map[string]policy.Record{"https://a.example": failed(1)})
	path, _ := d.bodies.path(rec.Good.SHA256)
	if err := os.WriteFile(filepath.Dir(path), nil, 0o600); err != nil { // where its folder would be
		t.Fatal(err)
	}
	if err := d.Save(t.Context(), map[string]policy.Record{"https://a.example": rec}); err == nil {
		t.Error("no error")
	}
	if got, ok := d.Load(t.Context(), "https://a.example"); !ok || same(got, failed(1)) != nil {
		t.Errorf("got %+v, %v", got, ok)
	}
}

// While the index can't be written, no bodies are left behind: no row would count them.
func TestNoBodiesWithoutIndex(t *testing.T) {
	for name, spoil := range map[string]func(d *Disk){
		"broken": func(d *Disk) { d.setBroken() },
		"failing": func(d *Disk) {
			if err := d.db.Close(); err != nil {
				t.Fatal(err)
			}
		},
	} {
		dir := t.TempDir()
		d, _ := open(t, dir)
		spoil(d)
		if err := d.Save(t.Context(), map[string]policy.Record{"http://a.example": good("User-agent: *\nDisallow: /a\n")}); err == nil {
			t.Errorf("%s: Save returns no error", name)
		}
		found, err := filepath.Glob(filepath.Join(dir, bodiesDir, "*", "*"))
		if len(found) > 0 || err != nil {
			t.Errorf("%s: left behind: %q, %v", name, found, err)
		}
	}
}
