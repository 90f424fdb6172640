package store

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"robotsgate/policy/snapshot"
)

// past is what was saved under each key, the oldest first.
type past map[string][]snapshot.Set

// few returns the files of a small store, and what was saved. The last save is two sets.
func few(t *testing.T) (files map[string][]byte, before map[string][]byte, saved past) {
	t.Helper()
	dir := t.TempDir()
	d := openFor(t, dir, ample)
	read := func() map[string][]byte {
		files := map[string][]byte{}
		for _, name := range []string{"00000001.data", "00000001.index"} {
			data, err := os.ReadFile(filepath.Join(d.dir, name))
			if err != nil {
				t.Fatal(err)
			}
			files[name] = data
		}
		return files
	}
	saved = past{}
	for _, sets := range []map[string]snapshot.Set{
		{origin(1): answered("one"), origin(2): answered("shared"), origin(4): answered("four")},
		{origin(1): answered("new"), origin(3): answered("shared"), origin(4): {}},
		{origin(5): answered("five"), origin(2): answered("two")},
	} {
		before = files
		save(t, d, sets)
		for key, set := range sets {
			saved[key] = append(saved[key], set)
		}
		files = read()
	}
	sound(t, d)
	return files, before, saved
}

// write puts the files of a store into a folder, in place of those that are there.
func write(t *testing.T, dir string, files map[string][]byte) {
	t.Helper()
	dir = filepath.Join(dir, snapshotsDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// whole reports whether a set is one that was saved, and the last one.
func (p past) whole(key string, got snapshot.Set) (whole, last bool) {
	i := slices.IndexFunc(p[key], func(set snapshot.Set) bool { return same(got, set) == nil })
	return i >= 0, i == len(p[key])-1
}

// usable opens a damaged folder. Open must succeed, and nothing may be found that was not saved. If a set is
// missing, that must be logged. After a fetch, everything must be as it was. It returns how many sets were whole.
func usable(t *testing.T, dir string, saved past, again bool) (left int, log string) {
	t.Helper()
	d, b := openLogged(t, dir, ample)
	defer d.Close()
	for key, versions := range saved {
		got, ok := d.Load(t.Context(), key)
		whole, last := saved.whole(key, got)
		if ok && !whole {
			t.Errorf("%s: got %+v, which was not saved", key, got)
		}
		forgotten := versions[len(versions)-1].Empty()
		if last || forgotten && !ok {
			left++
		}
		history, err := d.History(key)
		if err != nil {
			continue
		}
		for _, a := range history {
			if !slices.ContainsFunc(versions, func(r snapshot.Set) bool { return r.Good != nil && r.Good.SHA256 == a.Snapshot.SHA256 }) {
				t.Errorf("%s: the history has %+v, which was not saved", key, a)
			}
			if body, err := d.Body(a.Snapshot.SHA256); err == nil && snapshot.Digest(body) != a.Snapshot.SHA256 {
				t.Errorf("%s: got %q", key, body)
			}
		}
	}
	if again {
		last := map[string]snapshot.Set{}
		for key, versions := range saved {
			last[key] = versions[len(versions)-1]
		}
		save(t, d, last)
		for key, set := range last {
			if !set.Empty() {
				loaded(t, d, key, set)
			}
		}
	}
	return left, b.String()
}

// TestAnyByte changes one byte after the other.
func TestAnyByte(t *testing.T) {
	files, _, saved := few(t)
	dir := t.TempDir()
	for name, data := range files {
		write(t, dir, files)
		f, err := os.OpenFile(filepath.Join(dir, snapshotsDir, name), os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for i, b := range data {
			if _, err := f.WriteAt([]byte{b ^ 0x04}, int64(i)); err != nil {
				t.Fatal(err)
			}
			again := i%64 == 0
			left, log := usable(t, dir, saved, again)
			if left < len(saved)-2 || left < len(saved) && log == "" || name == "00000001.index" && log == "" {
				t.Fatalf("%s, byte %d: %d records of %d are left, log: %s", name, i, left, len(saved), log)
			}
			if again {
				write(t, dir, files)
			} else if _, err := f.WriteAt([]byte{b}, int64(i)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestCutOff: the files end anywhere in the last save, as after a crash, or before.
func TestCutOff(t *testing.T) {
	files, before, saved := few(t)
	dir := t.TempDir()
	for name, data := range files {
		for length := range data {
			if earlier := len(before[name]); length < earlier && length%50 != 0 {
				continue
			}
			cut := maps.Clone(files)
			cut[name] = data[:length]
			write(t, dir, cut)
			left, log := usable(t, dir, saved, length%64 == 0)
			if inLast := length >= len(before[name]); inLast && left < len(saved)-2 {
				t.Errorf("%s, %d bytes: %d records of %d are left", name, length, left, len(saved))
			}
			if name == "00000001.data" && length < len(data)-1 && log == "" { // the last byte is a newline
				t.Errorf("%s, %d bytes: nothing is logged", name, length)
			}
			if t.Failed() {
				return
			}
		}
	}
}

// TestNoFile: without one of its files, a segment is lost, and nothing else.
func TestNoFile(t *testing.T) {
	files, _, saved := few(t)
	for name := range files {
		dir := t.TempDir()
		rest := maps.Clone(files)
		delete(rest, name)
		rest["notes.txt"], rest["notes.data"] = []byte("not ours"), []byte("not ours")
		write(t, dir, rest)
		usable(t, dir, saved, true)
		left, log := usable(t, dir, saved, false)
		if left != len(saved) || log != "" {
			t.Errorf("without %s: after another fetch, %d records are left of %d, log: %s", name, left, len(saved), log)
		}
	}
	for name, data := range map[string][]byte{"noise": bytes.Repeat([]byte("noise, and nothing else\n"), 1000), "zeros": make([]byte, 6000), "nothing": nil} {
		for file := range files {
			other := maps.Clone(files)
			other[file] = data
			dir := t.TempDir()
			write(t, dir, other)
			if _, log := usable(t, dir, saved, true); log == "" && (name != "nothing" || file == "00000001.data") {
				t.Errorf("%s for %s: nothing is logged", name, file)
			}
		}
	}
}

// TestKilledAtFirstLine: the data of a segment without an item, as a kill leaves it, is no damage.
func TestKilledAtFirstLine(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string][]byte{"00000001.data": []byte("{\"key\":\"https://1.exa"), "00000001.index": nil})
	d, log := openLogged(t, dir, ample)
	set := answered("User-agent: *\n")
	save(t, d, map[string]snapshot.Set{origin(1): set})
	loaded(t, d, origin(1), set)
	if sound(t, d); log.Len() > 0 {
		t.Errorf("the log says %s", log)
	}
}

// TestDamagedBody: a damaged body is not used, and written again after a fetch. A reader says so, and changes nothing.
func TestDamagedBody(t *testing.T) {
	files, _, saved := few(t)
	dir := t.TempDir()
	files["00000001.data"] = bytes.ReplaceAll(files["00000001.data"], []byte("shared"), []byte("change"))
	write(t, dir, files)
	r, err := Read(dir, ample.Keep)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for text, want := range map[string]error{"shared": snapshot.ErrChanged, "other": fs.ErrNotExist, "new": nil} {
		if _, err := r.Body(snapshot.Digest(text)); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", text, err, want)
		}
	}
	if data, err := os.ReadFile(filepath.Join(r.dir, "00000001.data")); err != nil || !bytes.Equal(data, files["00000001.data"]) {
		t.Errorf("the reader has changed the file: %v", err)
	}
	d, log := openLogged(t, dir, ample)
	set := saved[origin(3)][0]
	absent(t, d, origin(3))
	if !bytes.Contains(log.Bytes(), []byte(origin(3))) {
		t.Errorf("log: %s", log)
	}
	loaded(t, d, origin(1), saved[origin(1)][1])
	save(t, d, map[string]snapshot.Set{origin(3): set})
	d.Close()
	d = openFor(t, dir, ample)
	loaded(t, d, origin(3), set)
}

// TestDamageWhileOpen: files that are damaged while the store is open cost their sets, not the process, and no more
// saves.
func TestDamageWhileOpen(t *testing.T) {
	for name, damage := range map[string]func(s *segment) error{
		"data cut off": func(s *segment) error { return os.Truncate(s.data.Name(), s.size/2) },
		"data zeros":   func(s *segment) error { return os.WriteFile(s.data.Name(), make([]byte, s.size), 0o600) },
		"bodies": func(s *segment) error {
			data, err := os.ReadFile(s.data.Name())
			return errors.Join(err, os.WriteFile(s.data.Name(), bytes.ReplaceAll(data, []byte("##"), []byte("xx")), 0o600))
		},
		"index cut off": func(s *segment) error { return os.Truncate(s.index.Name(), s.items*itemSize/2) },
		"index zeros":   func(s *segment) error { return os.WriteFile(s.index.Name(), make([]byte, s.items*itemSize), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			d, log := openLogged(t, t.TempDir(), Limits{Bytes: 1 << 20})
			for i := range 100 {
				save(t, d, map[string]snapshot.Set{origin(i): answered(robots(i, 2000))})
			}
			if len(d.segments) < 3 {
				t.Fatalf("%d segments", len(d.segments))
			}
			if err := damage(d.segments[0]); err != nil {
				t.Fatal(err)
			}
			for round := range 2 {
				var reading sync.WaitGroup
				reading.Go(func() {
					for i := 0; i < 100; i += 3 {
						if got, ok := d.Load(t.Context(), origin(i)); ok && string(got.Body) != robots(i, 2000) {
							t.Errorf("%d: got %+v", i, got)
						}
						_, _ = d.History(origin(i))
					}
					_, _ = d.HostOrigins("1.example")
				})
				for i := range 100 {
					if i%3 > 0 { // so that the first segment is moved
						set := answered(robots(100*round+i, 2100))
						save(t, d, map[string]snapshot.Set{origin(i): set})
						loaded(t, d, origin(i), set)
					}
				}
				reading.Wait()
				if d.segments[0].number == 1 {
					t.Error("the first segment is still there")
				}
			}
			if log.Len() == 0 {
				t.Error("nothing is logged")
			}
		})
	}
}

// TestSaveFails: a save that fails leaves the store as it was, and the next one works.
func TestSaveFails(t *testing.T) {
	for name, file := range map[string]func(s *segment) **os.File{
		"data":  func(s *segment) **os.File { return &s.data },
		"index": func(s *segment) **os.File { return &s.index },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			d := openFor(t, dir, ample)
			first, second := answered("first"), answered("second")
			save(t, d, map[string]snapshot.Set{origin(1): first})
			size := onDisk(t, dir)
			f := file(d.segments[0])
			writable := *f
			readOnly, err := os.Open(writable.Name())
			if err != nil {
				t.Fatal(err)
			}
			defer readOnly.Close()
			*f = readOnly
			for range 3 {
				if err := d.Save(t.Context(), map[string]snapshot.Set{origin(1): second, origin(2): second}); err == nil {
					t.Error("no error")
				}
			}
			*f = writable
			loaded(t, d, origin(1), first)
			absent(t, d, origin(2))
			if n := onDisk(t, dir); n != size || d.kept("second") {
				t.Errorf("%d bytes on disk, want %d", n, size)
			}
			sound(t, d)
			save(t, d, map[string]snapshot.Set{origin(1): second})
			d.Close()
			d = openFor(t, dir, ample)
			loaded(t, d, origin(1), second)
			if history, err := d.History(origin(1)); err != nil || len(history) != 2 {
				t.Errorf("got %v, %v", history, err)
			}
			sound(t, d)
		})
	}
}

// TestLostIndex: data without its index file is set aside at the first start, and stays there. The other segments are
// found, by a reader too.
func TestLostIndex(t *testing.T) {
	dir, limits := t.TempDir(), Limits{Bytes: 1 << 20}
	d := openFor(t, dir, limits)
	for i := range 40 {
		save(t, d, map[string]snapshot.Set{origin(i): answered(robots(i, 3000))})
	}
	if len(d.segments) < 2 {
		t.Fatalf("%d segments", len(d.segments))
	}
	d.Close()
	data, err := os.ReadFile(filepath.Join(d.dir, "00000001.data"))
	if err := errors.Join(err, os.Remove(filepath.Join(d.dir, "00000001.index"))); err != nil {
		t.Fatal(err)
	}
	r, err := Read(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Body(snapshot.Digest(robots(39, 3000))); err != nil {
		t.Errorf("a reader: %v", err)
	}
	for n := range 2 {
		d, log := openLogged(t, dir, limits)
		if (log.Len() > 0) != (n == 0) {
			t.Errorf("start %d logs %q", n, log)
		}
		for i := range 40 {
			save(t, d, map[string]snapshot.Set{origin(i): answered(robots(i, 3000))})
		}
		d.Close()
	}
	if aside, err := os.ReadFile(filepath.Join(d.dir, "damaged.data")); err != nil || !bytes.Equal(aside, data) {
		t.Errorf("set aside: %d bytes, %v; want %d", len(aside), err, len(data))
	}
}

// TestOtherFiles: files that a person or an editor has left in the folder change nothing.
func TestOtherFiles(t *testing.T) {
	dir := t.TempDir()
	d := openFor(t, dir, ample)
	set := answered("x")
	save(t, d, map[string]snapshot.Set{origin(1): set})
	d.Close()
	for _, name := range []string{"00000001.data~", "00000001.gz", "1.data", "2.index", "000000003.data", "x.data"} {
		if err := os.WriteFile(filepath.Join(d.dir, name), []byte("another"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		d = openFor(t, dir, ample)
		loaded(t, d, origin(1), set)
		save(t, d, map[string]snapshot.Set{origin(2): set})
		sound(t, d)
		d.Close()
	}
}

// TestSeveralBodies: of several records with the same body one may be damaged.
func TestSeveralBodies(t *testing.T) {
	dir := t.TempDir()
	d := openFor(t, dir, ample)
	for i := range 4 {
		save(t, d, map[string]snapshot.Set{origin(i): answered("the body")})
	}
	d.Close()
	name := filepath.Join(d.dir, "00000001.data")
	data, err := os.ReadFile(name)
	if err := errors.Join(err, os.WriteFile(name, bytes.Replace(data, []byte("the body"), []byte("tHe body"), 1), 0o600)); err != nil {
		t.Fatal(err)
	}
	for range 40 { // in the random order of a map
		d := openFor(t, dir, ample)
		r, err := Read(dir, ample.Keep)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Body(snapshot.Digest("the body")); err != nil || !d.kept("the body") {
			t.Fatalf("a reader: %v, or the gate does not find it", err)
		}
		d.Close()
		r.Close()
	}
}

// TestUnreadableIndex: an index file that can't be read any more costs its segment, not the saves that follow.
func TestUnreadableIndex(t *testing.T) {
	d, log := openLogged(t, t.TempDir(), Limits{Bytes: 1 << 20})
	for i := range 40 {
		save(t, d, map[string]snapshot.Set{origin(i): answered(robots(i, 3000))})
	}
	d.segments[0].index.Close()
	for i := 1; i < 400; i++ { // the first stays where it is
		save(t, d, map[string]snapshot.Set{origin(i): answered(robots(i, 3000))})
	}
	absent(t, d, origin(0))
	if !bytes.Contains(log.Bytes(), []byte("a part of the snapshots can't be read")) {
		t.Errorf("the log says %s", log)
	}
	sound(t, d)
}

// TestSameID: a key that has the id of another one forgets its set, whose answers become history.
func TestSameID(t *testing.T) {
	d := openFor(t, t.TempDir(), ample)
	save(t, d, map[string]snapshot.Set{origin(1): answered("one")})
	one, two := idOf(origin(1)), idOf(origin(2))
	d.records[two] = d.records[one]
	delete(d.records, one)
	absent(t, d, origin(2))
	set := answered("one") // the same answer, but not of the same origin
	save(t, d, map[string]snapshot.Set{origin(2): set})
	loaded(t, d, origin(2), set)
	if history, err := d.History(origin(1)); err != nil || len(history) != 1 || history[0].To.IsZero() {
		t.Errorf("got %+v, %v", history, err)
	}
	if history, err := d.History(origin(2)); err != nil || len(history) != 1 {
		t.Errorf("got %+v, %v", history, err)
	}
}

// TestNoise: what is no item is not taken for one.
func TestNoise(t *testing.T) {
	it := item{record{place{offset: 2}, 3, 4, 10, originSet, 8}, 5, 6, 7, -9}
	b := it.appendTo(nil)
	if got, ok := parseItem(b); got != it || !ok || len(b) != itemSize {
		t.Errorf("got %+v, %v, want %+v", got, ok, it)
	}
	for i := range b {
		b[i] ^= 1
		if got, ok := parseItem(b); ok {
			t.Errorf("byte %d changed: got %+v", i, got)
		}
		b[i] ^= 1
	}
	if got, ok := parseItem(make([]byte, itemSize)); ok {
		t.Errorf("zeros: got %+v", got)
	}
}
