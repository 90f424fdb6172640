package store

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/policy"
)

// filled is the content of an index with some hundred records, and the records.
func filled(t *testing.T, dir string) (index []byte, records map[string]policy.Record) {
	t.Helper()
	d, _ := open(t, dir)
	records = map[string]policy.Record{}
	for i := range 400 {
		records[fmt.Sprintf("https://%d.example", i)] = failed(i)
	}
	records["https://long.example"] = policy.Record{Bound: map[string]*policy.Snapshot{strings.Repeat("bot", 5000): failed(1).Bound["bot"]}}
	save(t, d, records)
	for i := range 10 { // so that there are free pages, too
		save(t, d, map[string]policy.Record{fmt.Sprintf("https://%d.example", i): failed(i)})
	}
	d.Close()
	index, err := os.ReadFile(filepath.Join(dir, indexFile))
	if err != nil {
		t.Fatal(err)
	}
	return index, records
}

// usable opens a folder with a damaged index. Open must succeed, no record may be found that
// was not saved, and saving must work. It returns how many records are left.
func usable(t *testing.T, dir string, records map[string]policy.Record) (left int, log string) {
	t.Helper()
	var b bytes.Buffer
	d, err := Open(dir, ample, slog.New(slog.NewTextHandler(&b, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for origin, want := range records {
		got, ok := d.Load(t.Context(), origin)
		if !ok {
			continue
		}
		left++
		if err := same(got, want); err != nil {
			t.Errorf("%s: %v", origin, err)
		}
	}
	save(t, d, map[string]policy.Record{"https://new.example": good("User-agent: *\n")})
	if _, ok := d.Load(t.Context(), "https://new.example"); !ok {
		t.Error("a record that was saved since is not found")
	}
	return left, b.String()
}

// TestCorruptIndex: a corrupt index is set aside, replaced and logged.
func TestCorruptIndex(t *testing.T) {
	index, records := filled(t, t.TempDir())
	page := os.Getpagesize()
	zeroed := func(from, to int) []byte {
		b := bytes.Clone(index)
		clear(b[from:to])
		return b
	}
	for name, data := range map[string][]byte{
		"text":              []byte("this is no index"),
		"one byte":          {0},
		"noise":             noise(len(index)),
		"a page of noise":   noise(page),
		"zeros":             make([]byte, len(index)),
		"half a page":       index[:page/2],
		"two pages":         index[:2*page],
		"four pages":        index[:4*page],
		"half":              index[:len(index)/2&^(page-1)],
		"half, odd":         index[:len(index)/2+17],
		"both metas zeroed": zeroed(0, 2*page),
		"all but the metas": zeroed(2*page, len(index)),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, indexFile)
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			left, log := usable(t, dir, records)
			if left != 0 {
				t.Errorf("%d records are left", left)
			}
			aside, _ := filepath.Glob(path + ".corrupt-*")
			if len(aside) != 1 || !strings.Contains(log, aside[0]) {
				t.Fatalf("set aside: %q, log: %s", aside, log)
			}
			if kept, err := os.ReadFile(aside[0]); err != nil || !bytes.Equal(kept, data) {
				t.Errorf("the file set aside differs from the corrupt one: %v", err)
			}
			if _, log := usable(t, dir, nil); log != "" {
				t.Errorf("the second time: %s", log)
			}
		})
	}
}

// TestChecksum: a changed value, and one of another key, are errors.
func TestChecksum(t *testing.T) {
	value := withChecksum([]byte("key"), []byte("value"))
	if got, err := verify([]byte("key"), value); err != nil || string(got) != "value" {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := verify([]byte("kez"), value); err == nil {
		t.Errorf("of another key: got %q", got)
	}
	for i := range value {
		value[i] ^= 1
		if got, err := verify([]byte("key"), value); err == nil {
			t.Errorf("byte %d changed: got %q", i, got)
		}
		value[i] ^= 1
	}
	for i := range value {
		if got, err := verify([]byte("key"), value[:i]); err == nil {
			t.Errorf("%d bytes: got %q", i, got)
		}
	}
}

// TestCorruptAgain: only the last corrupt index is kept.
func TestCorruptAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		path := filepath.Join(dir, indexFile)
		for i := range 5 {
			if err := os.WriteFile(path, fmt.Append(nil, "rubbish ", i), 0o600); err != nil {
				t.Fatal(err)
			}
			usable(t, dir, nil)
			time.Sleep(time.Minute)
		}
		aside, _ := filepath.Glob(path + ".corrupt-*")
		if len(aside) != 1 {
			t.Fatalf("set aside: %q", aside)
		}
		if kept, err := os.ReadFile(aside[0]); err != nil || string(kept) != "rubbish 4" {
			t.Errorf("kept %q, %v", kept, err)
		}
	})
}

// TestEmptyIndex: an empty index is logged.
func TestEmptyIndex(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, indexFile), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, log := usable(t, dir, nil); !strings.Contains(log, "was empty") {
		t.Errorf("log: %s", log)
	}
	if _, log := usable(t, dir, nil); log != "" {
		t.Errorf("the second time: %s", log)
	}
}

// TestAnyPage overwrites one page after the other, and flips bits: every record that is
// found afterwards was saved so.
func TestAnyPage(t *testing.T) {
	index, records := filled(t, t.TempDir())
	page := os.Getpagesize()
	dir := t.TempDir()
	try := func(name string, data []byte) {
		t.Run(name, func(t *testing.T) {
			files, _ := filepath.Glob(filepath.Join(dir, indexFile+"*"))
			for _, f := range files {
				os.Remove(f)
			}
			if err := os.WriteFile(filepath.Join(dir, indexFile), data, 0o600); err != nil {
				t.Fatal(err)
			}
			left, log := usable(t, dir, records)
			if left < len(records) && log == "" {
				t.Errorf("%d of %d records are left, and nothing is logged", left, len(records))
			}
		})
	}
	pages := len(index) / page
	for p := range pages {
		for name, content := range map[string][]byte{
			"noise": noise(page), "zeros": make([]byte, page), "a copy of another": index[(p+3)%pages*page:][:page],
		} {
			data := bytes.Clone(index)
			copy(data[p*page:], content)
			try(fmt.Sprintf("page %d: %s", p, name), data)
		}
	}
	for i := 100; i < len(index); i += len(index)/50 + 1 {
		data := bytes.Clone(index)
		data[i] ^= 0x04
		try(fmt.Sprintf("bit at %d", i), data)
	}
}

// TestAnyBranch: a changed key in a branch page hides rows, which is logged.
func TestAnyBranch(t *testing.T) {
	index, records := filled(t, t.TempDir())
	page := os.Getpagesize()
	hidden := 0
	for p := 2; p < len(index)/page; p++ {
		const branch, header, element = 1, 16, 16
		at := p * page
		if binary.NativeEndian.Uint16(index[at+8:]) != branch {
			continue
		}
		for i := range int(binary.NativeEndian.Uint16(index[at+10:])) {
			e := at + header + i*element
			key := e + int(binary.NativeEndian.Uint32(index[e:]))
			size := int(binary.NativeEndian.Uint32(index[e+4:]))
			data := bytes.Clone(index)
			data[key+size*3/4] ^= 0x04
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, indexFile), data, 0o600); err != nil {
				t.Fatal(err)
			}
			left, log := usable(t, dir, records)
			if left < len(records) {
				hidden++
				if log == "" {
					t.Errorf("page %d, key %d: %d of %d records are left, and nothing is logged", p, i, left, len(records))
				}
			}
		}
	}
	if hidden == 0 {
		t.Error("no change of a key has hidden a row")
	}
}

// TestDamageWhileOpen: damage is an error, not the end of the process.
func TestDamageWhileOpen(t *testing.T) {
	dir := t.TempDir()
	index, records := filled(t, dir)
	d, log := open(t, dir)
	path := filepath.Join(dir, indexFile)
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	page := os.Getpagesize()
	if _, err := f.WriteAt(noise(len(index)-2*page), int64(2*page)); err != nil {
		t.Fatal(err)
	}
	f.Close()
	for origin := range records {
		if got, ok := d.Load(t.Context(), origin); ok && same(got, records[origin]) != nil {
			t.Errorf("%s: got %+v", origin, got)
		}
	}
	if log.Len() == 0 {
		t.Error("nothing is logged")
	}
	_ = d.Save(t.Context(), map[string]policy.Record{"https://new.example": failed(1)})
	// A file that was cut short: the kernel sends a signal.
	if err := os.Truncate(path, int64(page)); err != nil {
		t.Fatal(err)
	}
	for origin := range records {
		d.Load(t.Context(), origin)
	}
	if err := d.Save(t.Context(), map[string]policy.Record{"https://new.example": failed(1)}); err == nil {
		t.Error("saved into a file that is not there")
	}
}
