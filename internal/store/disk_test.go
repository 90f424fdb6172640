package store

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"robotsgate/policy"
)

// ample limits are those of the default configuration.
var ample = Limits{Keep: 8760 * time.Hour, Bytes: 10 << 30}

// good returns the record of an origin with this robots.txt.
func good(body string) policy.Record {
	s := &policy.Snapshot{
		URL: "https://example.com/robots.txt", Status: 200, Fetched: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC),
		SHA256: policy.Digest(body), ETag: `"1"`, Lifetime: time.Hour,
	}
	return policy.Record{Good: s, Last: s, Body: []byte(body)}
}

// failed returns the record of an origin that answers one crawler with 503.
func failed(n int) policy.Record {
	s := &policy.Snapshot{Status: 503, Error: "the origin answered 503", Failures: n, Fetched: time.Date(2026, 1, 1, 0, 0, n, 0, time.UTC)}
	return policy.Record{Bound: map[string]*policy.Snapshot{"bot": s}}
}

func open(t *testing.T, dir string) (d *Disk, log *bytes.Buffer) {
	t.Helper()
	log = new(bytes.Buffer)
	d, err := Open(dir, ample, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d, log
}

func save(t *testing.T, s policy.Store, records map[string]policy.Record) {
	t.Helper()
	if err := s.Save(t.Context(), records); err != nil {
		t.Fatal(err)
	}
}

// same reports the differences between a record and the one that was saved.
func same(got, want policy.Record) error {
	if !reflect.DeepEqual(got, want) {
		return fmt.Errorf("got %+v, want %+v", got, want)
	}
	if (got.Last == got.Good) != (want.Last == want.Good) {
		return errors.New("Last and Good are not the same as they were")
	}
	return nil
}

// TestRestart: all records are found after a restart.
func TestRestart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not", "there", "yet")
	records := map[string]policy.Record{
		"https://a.example":      good("User-agent: *\nDisallow: /\n"),
		"https://b.example":      good("\x00\xff not UTF-8"),
		"https://empty.example":  good(""),
		"https://failed.example": failed(3),
		"https://both.example": {
			Good: good("# old").Good, Body: []byte("# old"), Last: &policy.Snapshot{Error: "refused", Failures: 2, Since: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)},
			Bound: failed(1).Bound,
		},
	}
	d, _ := open(t, dir)
	save(t, d, records)
	for range 2 {
		for origin, want := range records {
			got, ok := d.Load(t.Context(), origin)
			if !ok {
				t.Fatalf("%s is lost", origin)
			}
			if err := same(got, want); err != nil {
				t.Errorf("%s: %v", origin, err)
			}
		}
		if _, ok := d.Load(t.Context(), "https://unknown.example"); ok {
			t.Error("a record is found that was never saved")
		}
		d.Close()
		var log *bytes.Buffer
		if d, log = open(t, dir); log.Len() > 0 {
			t.Errorf("log: %s", log)
		}
	}
}

// TestClosed: late requests find nothing, and nothing is logged.
func TestClosed(t *testing.T) {
	d, log := open(t, t.TempDir())
	save(t, d, map[string]policy.Record{"https://a.example": good("")})
	d.Close()
	if _, ok := d.Load(t.Context(), "https://a.example"); ok || log.Len() > 0 {
		t.Errorf("found %v, log: %s", ok, log)
	}
	if err := d.Save(t.Context(), map[string]policy.Record{"https://a.example": good("")}); err == nil {
		t.Error("saved after Close")
	}
}

// bodyFiles returns the files below snapshots, and fails if any is not whole.
func bodyFiles(t *testing.T, dir string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(dir, bodiesDir), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if policy.Digest(string(data)) != filepath.Base(path) {
			t.Errorf("%s does not match its name", path)
		}
		files = append(files, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestBodies: equal bodies are stored once, readable for their owner only, and can be read
// while the store is open.
func TestBodies(t *testing.T) {
	dir := t.TempDir()
	d, _ := open(t, dir)
	for i := range 20 {
		save(t, d, map[string]policy.Record{
			fmt.Sprintf("https://%d.example", i):  good("User-agent: *\n"),
			fmt.Sprintf("https://x%d.example", i): good("Disallow:\n"),
		})
	}
	files := bodyFiles(t, dir)
	if len(files) != 2 {
		t.Errorf("%d files for two bodies: %q", len(files), files)
	}
	for _, path := range files {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	// Only a digest names a file.
	for _, digest := range []string{"", "x", "../../../etc/passwd", strings.Repeat("A", 64), strings.Repeat("a", 63) + "/"} {
		if _, err := d.bodies.write(digest, []byte("x")); err == nil {
			t.Errorf("%q: written", digest)
		}
		if _, err := d.bodies.read(digest); err == nil {
			t.Errorf("%q: read", digest)
		}
	}
}

// TestDamagedBody: a damaged body is not used, and written anew after a fetch.
func TestDamagedBody(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"changed":   func(path string) error { return os.WriteFile(path, []byte("User-agent: *\nAllow: /   \n"), 0o600) },
		"cut short": func(path string) error { return os.Truncate(path, 5) },
		"empty":     func(path string) error { return os.Truncate(path, 0) },
		"gone":      os.Remove,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			d, log := open(t, dir)
			rec := good("User-agent: *\nDisallow: /\n")
			save(t, d, map[string]policy.Record{"https://a.example": rec, "https://b.example": failed(1)})
			path, _ := d.bodies.path(rec.Good.SHA256)
			if err := damage(path); err != nil {
				t.Fatal(err)
			}
			if got, ok := d.Load(t.Context(), "https://a.example"); ok {
				t.Errorf("got %+v", got)
			}
			if !strings.Contains(log.String(), "https://a.example") {
				t.Errorf("log: %s", log)
			}
			if _, ok := d.Load(t.Context(), "https://b.example"); !ok {
				t.Error("another origin's record is gone")
			}
			save(t, d, map[string]policy.Record{"https://a.example": rec})
			if got, ok := d.Load(t.Context(), "https://a.example"); !ok || same(got, rec) != nil {
				t.Errorf("after another fetch: got %+v, %v", got, ok)
			}
		})
	}
}

// TestCrash: bodies without rows, and rows without bodies, do no harm.
func TestCrash(t *testing.T) {
	dir := t.TempDir()
	d, _ := open(t, dir)
	rec := good("User-agent: *\n")
	// Between body and index: a body that no record names, and half of one.
	if _, err := d.bodies.write(rec.Good.SHA256, rec.Body); err != nil {
		t.Fatal(err)
	}
	path, _ := d.bodies.path(rec.Good.SHA256)
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), ".new-123"), []byte("User-a"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.Close()
	d, log := open(t, dir)
	if _, ok := d.Load(t.Context(), "https://a.example"); ok || log.Len() > 0 {
		t.Errorf("found %v, log: %s", ok, log)
	}
	save(t, d, map[string]policy.Record{"https://a.example": rec})
	if got, ok := d.Load(t.Context(), "https://a.example"); !ok || same(got, rec) != nil {
		t.Errorf("got %+v, %v", got, ok)
	}
}

// noise returns the same bytes each time.
func noise(n int) []byte {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// testLog shows the log of a test that fails.
func testLog(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), nil))
}
