package store

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/policy"
)

// TestOrphans: after a crash, unfinished files are removed, and bodies that no
// row names become superseded answers of the time of the file.
func TestOrphans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		d := openFor(t, dir, ample)
		save(t, d, map[string]policy.Record{"https://a.example": answered("named")})
		d.Close()
		leave := func(name, content string, age time.Duration) (path string) {
			path = filepath.Join(dir, bodiesDir, name[:2], name)
			if name[0] == '.' {
				path = filepath.Join(dir, bodiesDir, "00", name)
			}
			at := time.Now().Add(-age)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(path, at, at); err != nil {
				t.Fatal(err)
			}
			return path
		}
		const keep = 100 * time.Hour
		old := leave(".new-1", "half a bo", 2*time.Hour)
		young := leave(".new-2", "half a bo", time.Minute)
		foreign := leave("notes", "not ours", 1000*time.Hour)
		leave(policy.Digest("recent"), "recent", time.Hour)
		leave(policy.Digest("expired"), "expired", keep+time.Hour)
		leave(policy.Digest("named later"), "named later", keep-10*time.Hour)
		for i := range 2 * scanFiles {
			leave(policy.Digest(robots(i, 100)), robots(i, 100), keep+time.Hour)
		}

		d = openFor(t, dir, Limits{Keep: keep, Bytes: 1 << 30})
		defer d.Close()
		time.Sleep(time.Minute)
		exists := func(path string) bool { _, err := os.Stat(path); return err == nil }
		if exists(old) || !exists(young) || !exists(foreign) {
			t.Errorf("an old unfinished file is there: %v, a young one: %v, a foreign file: %v", exists(old), exists(young), exists(foreign))
		}
		if d.kept("expired") || !d.kept("recent") || !d.kept("named") {
			t.Errorf("kept the expired one: %v, the recent one: %v, that with a record: %v", d.kept("expired"), d.kept("recent"), d.kept("named"))
		}
		for i := range 2 * scanFiles {
			if d.kept(robots(i, 100)) {
				t.Fatalf("%d is still there", i)
			}
		}
		save(t, d, map[string]policy.Record{"https://b.example": answered("named later")})
		time.Sleep(26 * time.Hour)
		if exists(young) || !exists(foreign) {
			t.Errorf("a day later the unfinished file is there: %v, a foreign file: %v", exists(young), exists(foreign))
		}
		if !d.kept("recent") || !d.kept("named later") {
			t.Error("gone too early")
		}
		time.Sleep(keep)
		if d.kept("recent") || !d.kept("named") {
			t.Errorf("after keep, kept the body without a record: %v, the one with a record: %v", d.kept("recent"), d.kept("named"))
		}
		os.Remove(foreign)
		sound(t, d)
	})
}

// TestOrphansOfIndex: the bodies of a damaged index stay as evidence, and count.
func TestOrphansOfIndex(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		d := openFor(t, dir, ample)
		const n = maxAnswers + 50
		records := map[string]policy.Record{}
		for i := range n {
			records[origin(i)] = answered(robots(i, 2000))
		}
		save(t, d, records)
		d.Close()
		now := time.Now()
		for _, path := range bodyFiles(t, dir) { // the folder has the real time
			if err := os.Chtimes(path, now, now); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, indexFile), []byte("rubbish"), 0o600); err != nil {
			t.Fatal(err)
		}
		d = openFor(t, dir, Limits{Keep: time.Hour, Bytes: 1 << 30})
		defer d.Close()
		time.Sleep(30 * time.Second)
		sound(t, d)
		if left := len(bodyFiles(t, dir)); left != n {
			t.Errorf("%d bodies are left of %d", left, n)
		}
		time.Sleep(3 * time.Hour)
		if left := len(bodyFiles(t, dir)); left != 0 {
			t.Errorf("after keep, %d bodies are left", left)
		}
	})
}
