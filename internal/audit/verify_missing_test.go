package audit

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/proxy"
)

// record writes one record.
func record(l *Log, id string) {
	l.Write(&proxy.Record{ID: id, Start: time.Now(), Method: "GET", URL: "http://a.example/" + id, Origin: "http://a.example"})
	time.Sleep(time.Second)
	synctest.Wait()
}

// gate returns a log that writes to audit.jsonl in a folder, or to out.
func gate(t *testing.T, dir string, out io.Writer) *Log {
	o := Options{File: filepath.Join(dir, "audit.jsonl"), Keep: 10, Heads: filepath.Join(dir, "chains")}
	if out != nil {
		o.File = "-"
	}
	return open(t, o, out, nil)
}

// TestVerifyBeginning: missing records at the beginning of a file are found, even if no record
// of their chains is left.
func TestVerifyBeginning(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		for i := range 3 { // a gate that is started three times
			l := gate(t, dir, nil)
			record(l, fmt.Sprint(i, "a"))
			record(l, fmt.Sprint(i, "b"))
			l.Close()
		}
	})
	path := filepath.Join(dir, "audit.jsonl")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(whole, []byte("\n"))[:6]
	join := func(lines ...[]byte) []byte { return bytes.Join(lines, nil) }
	const (
		cut  = "audit.jsonl:1: the file has not begun with this record: what stood before it is missing"
		none = "audit.jsonl: no record is left of the chains that were written to it: 3, of 6 records, the last of 2000-01-01 00:00:05; where they have been rotated, name those files, too"
	)
	for _, test := range []struct {
		name string
		text []byte
		want []string
	}{
		{"untouched", whole, nil},
		{"the first chain", join(lines[2:]...), []string{cut}},
		{"two chains", join(lines[4:]...), []string{cut}},
		{"the first chain and the next record", join(lines[3:]...), []string{"audit.jsonl:1: record 1 of chain C is missing before this one"}},
		{"all of them", nil, []string{none}},
		{"all, and blank lines are left", []byte("\n\n  \n"), []string{none}},
		{"all ends of lines", bytes.ReplaceAll(whole, []byte("\n"), []byte(" ")),
			[]string{"audit.jsonl:1: no record (not a JSON object of this kind): it has been added or changed", none}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if err := os.WriteFile(path, test.text, 0o600); err != nil {
				t.Fatal(err)
			}
			faults, _ := verify(t, dir, []string{path})
			if !slices.Equal(faults, test.want) {
				t.Errorf("faults %q, want %q", faults, test.want)
			}
		})
	}
	t.Run("a copy elsewhere", func(t *testing.T) {
		other := filepath.Join(dir, "copy", "audit.jsonl")
		if err := os.MkdirAll(filepath.Dir(other), 0o700); err != nil || os.WriteFile(other, nil, 0o600) != nil {
			t.Fatal(err)
		}
		if faults, _ := verify(t, dir, []string{other}); !slices.Equal(faults, []string{none}) {
			t.Errorf("faults %q", faults)
		}
	})
	t.Run("heads are gone", func(t *testing.T) {
		v := NewVerifier(VerifyOptions{Files: []string{path}, Words: VerifyWords{Folder: "data_dir"}})
		v.End()
		if v.Faulty != 1 || !strings.HasPrefix(v.Faults[0], "data_dir has no heads of any chain") {
			t.Errorf("faults %q", v.Faults)
		}
	})
}

// TestVerifyStream: where standard output is kept is not known, so the records may begin with
// any chain.
func TestVerifyStream(t *testing.T) {
	dir := t.TempDir()
	var first, second bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		for _, out := range []io.Writer{&first, &second} {
			l := gate(t, dir, out)
			record(l, "a")
			l.Close()
		}
	})
	path := filepath.Join(dir, "kept.jsonl")
	for text, want := range map[string]string{
		first.String() + second.String(): "",
		second.String():                  "chains that were written to standard output before what is here, rotated away, removed or not given: 1, of 1 records, the last of 2000-01-01 00:00:00",
		first.String():                   "chains that were written to standard output, which was not given: 1, of 1 records, the last of 2000-01-01 00:00:01",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if faults, notes := verify(t, dir, []string{path}); len(faults) > 0 || strings.Join(notes, "\n") != want {
			t.Errorf("faults %q, notes %q, want %q", faults, notes, want)
		}
	}
}

// TestVerifyMoved: two gates write to one file. Each states where its chain continues in the
// next file, so that nothing seems missing without the first one.
func TestVerifyMoved(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "audit.jsonl")
	synctest.Test(t, func(t *testing.T) {
		a, b, idle := gate(t, dir, nil), gate(t, dir, nil), gate(t, dir, nil)
		record(a, "a1")
		record(b, "b1")
		record(idle, "i1")
		if err := os.Rename(path, path+".1"); err != nil {
			t.Fatal(err)
		}
		record(a, "a2")
		record(b, "b2")
		record(a, "a3")
		a.Close()
		b.Close()
		idle.Close()
	})
	if faults, notes := verify(t, dir, []string{path, path + ".1"}); len(faults)+len(notes) > 0 {
		t.Errorf("both: faults %q, notes %q", faults, notes)
	}
	faults, notes := verify(t, dir, []string{path})
	if len(faults) > 0 || len(notes) != 3 {
		t.Errorf("the second: faults %q, notes %q", faults, notes)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(text, []byte(`"number":2,"begins":true,`)) || !bytes.Contains(text, []byte(`"number":2,"moved":true,`)) || bytes.Contains(text, []byte(`"number":3,"`+"moved")) {
		t.Errorf("got %s", text)
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	for i, want := range []string{"audit.jsonl:1: the file has not begun with this record: what stood before it is missing", "audit.jsonl:2: record"} {
		cut := bytes.Join(slices.Delete(slices.Clone(lines), i, i+1), nil)
		if err := os.WriteFile(path, cut, 0o600); err != nil {
			t.Fatal(err)
		}
		if faults, _ := verify(t, dir, []string{path}); len(faults) == 0 {
			t.Errorf("without line %d: faults %q, want %q", i+1, faults, want)
		}
	}
}

// TestVerifyLater: a chain that has begun after the heads were read is known from later heads.
func TestVerifyLater(t *testing.T) {
	dir := t.TempDir()
	files := []string{filepath.Join(dir, "audit.jsonl")}
	var before map[string]Head
	synctest.Test(t, func(t *testing.T) {
		for range 2 {
			l := gate(t, dir, nil)
			record(l, "a")
			l.Close()
			if before == nil {
				before, _ = Heads(filepath.Join(dir, "chains"))
			}
		}
	})
	after, err := Heads(filepath.Join(dir, "chains"))
	if err != nil || len(before) != 1 || len(after) != 2 {
		t.Fatal(err, before, after)
	}
	for want, later := range []map[string]Head{after, nil} { // want: number of faults
		v := NewVerifier(VerifyOptions{Heads: maps.Clone(before), Files: files})
		if err := Lines(files, nil, v.Line); err != nil {
			t.Fatal(err)
		}
		v.Later(later)
		v.End()
		if v.Faulty != want {
			t.Errorf("later %v: faults %q", later, v.Faults)
		}
	}
}
