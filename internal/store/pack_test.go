package store

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/policy"
)

// TestPack: the next start makes an index smaller that is mostly free.
func TestPack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		path := filepath.Join(dir, indexFile)
		size := func() int64 {
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			return info.Size()
		}
		d := openFor(t, dir, ample)
		const hosts, last = 16_000, "https://last.example"
		records := map[string]policy.Record{}
		for i := range hosts {
			records[origin(i)] = down(policy.Record{}, 503)
		}
		save(t, d, records)
		d.Close()
		large := size()

		// It is mostly in use, so it stays as it is.
		d = openFor(t, dir, ample)
		d.Close()
		if size() != large {
			t.Errorf("from %d bytes to %d", large, size())
		}
		d = openFor(t, dir, Limits{Keep: time.Hour, Bytes: 1 << 20})
		time.Sleep(time.Minute)
		rec := answered("last")
		save(t, d, map[string]policy.Record{last: rec})
		d.Close()
		if err := os.WriteFile(path+".new", []byte("half of"), 0o600); err != nil {
			t.Fatal(err)
		}
		d = openFor(t, dir, ample)
		defer d.Close()
		if n := size(); large < minPacked || n > large/8 {
			t.Errorf("from %d bytes to %d", large, n)
		}
		sound(t, d)
		// The new file is locked and written.
		if _, err := Open(dir, ample, testLog(t)); !errors.Is(err, ErrInUse) {
			t.Errorf("got %v, want ErrInUse", err)
		}
		save(t, d, map[string]policy.Record{"https://a.example": answered("a")})
		d.Close()
		d = openFor(t, dir, ample)
		defer d.Close()
		for origin, body := range map[string]string{last: "last", "https://a.example": "a"} {
			if got, ok := d.Load(t.Context(), origin); !ok || string(got.Body) != body {
				t.Errorf("%s: got %+v, %v", origin, got, ok)
			}
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
			t.Errorf("in the folder: %v, %v", entries, err)
		}
	})
}

// TestReplaced: a process that got the lock of a file that was replaced meanwhile does not
// use it.
func TestReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), indexFile)
	if err := replaced(path, nil); err != nil {
		t.Error(err)
	}
	write := func() os.FileInfo {
		if err := os.WriteFile(path+".new", nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	before := write()
	if err := replaced(path, before); err != nil {
		t.Error(err)
	}
	hold, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Close()
	write()
	if err := replaced(path, before); !errors.Is(err, ErrInUse) {
		t.Errorf("got %v, want ErrInUse", err)
	}
}
