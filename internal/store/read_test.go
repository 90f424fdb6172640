package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"robotsgate/policy"
)

// TestReadBeside reads again and again while another process saves.
func TestReadBeside(t *testing.T) {
	dir := t.TempDir()
	if _, err := Read(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no store: %v", err)
	}
	d := openFor(t, dir, ample)
	defer d.Close()
	const origin = "https://a.example"
	first := answered("first")
	save(t, d, map[string]policy.Record{origin: first})
	stop := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		for i := range 300 { // bounded, since a slow machine might never get a copy otherwise
			select {
			case <-stop:
				return
			default:
			}
			all := map[string]policy.Record{}
			for j := range 20 {
				all[fmt.Sprintf("https://%d-%d.example", i%7, j)] = answered(fmt.Sprint(i, j))
			}
			if err := d.Save(t.Context(), all); err != nil {
				t.Error(err)
			}
		}
	})
	for range 20 {
		r, err := Read(dir)
		if err != nil {
			t.Error(err)
			break
		}
		history, err := r.History(origin)
		if err != nil || len(history) != 1 || history[0].Snapshot.SHA256 != first.Good.SHA256 {
			t.Errorf("got %+v, %v", history, err)
		}
		for j := range 20 {
			for _, a := range must(t, r, fmt.Sprintf("https://0-%d.example", j)) {
				if body, err := r.Body(a.Snapshot.SHA256); err != nil || policy.Digest(body) != a.Snapshot.SHA256 {
					t.Errorf("a body that the index names: %v", err)
				}
			}
		}
		temp := r.temp
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(temp); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the copy is left: %v", err)
		}
	}
	close(stop)
	writer.Wait()
}

func must(t *testing.T, r *Reader, origin string) []Answer {
	t.Helper()
	all, err := r.History(origin)
	if err != nil {
		t.Error(err)
	}
	return all
}

// TestReadBody: a missing body and a changed one are different errors. The reader changes no file.
func TestReadBody(t *testing.T) {
	dir := t.TempDir()
	d := openFor(t, dir, ample)
	rec := answered("User-agent: *\n")
	save(t, d, map[string]policy.Record{"https://a.example": rec})
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	digest := rec.Good.SHA256
	file := filepath.Join(dir, bodiesDir, digest[:2], digest)
	if err := os.WriteFile(file, []byte("User-agent: x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Body(digest); !errors.Is(err, ErrChanged) {
		t.Errorf("changed: %v", err)
	}
	if _, err := os.Stat(file); err != nil {
		t.Errorf("the reader has removed it: %v", err)
	}
	if _, err := r.Body(policy.Digest("other")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("gone: %v", err)
	}
	if _, err := r.Body("../../etc/passwd"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no digest: %v", err)
	}
}

// TestReadDamaged: a damaged index is an error, not a crash.
func TestReadDamaged(t *testing.T) {
	for name, data := range map[string][]byte{"empty": nil, "short": []byte("x"), "other": make([]byte, 1<<16)} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, indexFile), data, 0o600); err != nil {
			t.Fatal(err)
		}
		if r, err := Read(dir); err == nil {
			r.Close()
			t.Errorf("%s is read", name)
		}
	}
}

// TestReadLeavesNothing: no files are left behind, after success and after errors.
func TestReadLeavesNothing(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("open files can't be removed there")
	}
	dir, temp := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", temp)
	d := openFor(t, dir, ample)
	defer d.Close()
	save(t, d, map[string]policy.Record{"https://a.example": answered("first")})
	r, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	left, err := os.ReadDir(temp)
	if err != nil || len(left) > 0 {
		t.Errorf("%v: %v", left, err)
	}
	if all, err := r.History("https://a.example"); err != nil || len(all) != 1 {
		t.Errorf("%v, %v", all, err)
	}
}
