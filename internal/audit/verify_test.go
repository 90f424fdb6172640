package audit

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/proxy"
)

// rotated writes n records into small files, one record at a time, and returns the files that
// are kept, the oldest first.
func rotated(t *testing.T, dir string, n, keep int) []string {
	t.Helper()
	path := filepath.Join(dir, "audit.jsonl")
	synctest.Test(t, func(t *testing.T) {
		l := open(t, Options{File: path, Keep: keep, Heads: filepath.Join(dir, "chains")}, nil, nil)
		l.writer.out.max = 2000
		for i := range n {
			l.Write(&proxy.Record{ID: fmt.Sprint(i), Start: time.Now(), Method: "GET", URL: fmt.Sprintf("http://a.example/%d", i), Origin: "http://a.example"})
			time.Sleep(time.Second)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	})
	return append(rotatedFiles(path), path)
}

// verify returns the faults and notes of files, without their folder.
func verify(t *testing.T, dir string, files []string) (faults []string, notes []string) {
	t.Helper()
	return verifyStrictly(t, dir, files, false)
}

func verifyStrictly(t *testing.T, dir string, files []string, strict bool) (faults []string, notes []string) {
	t.Helper()
	heads, err := Heads(filepath.Join(dir, "chains"))
	if err != nil {
		t.Fatal(err)
	}
	expired, err := Expired(filepath.Join(dir, "chains"))
	if err != nil {
		t.Fatal(err)
	}
	v := NewVerifier(VerifyOptions{Files: files, Heads: heads, Expired: expired, Strict: strict, Words: VerifyWords{Folder: "data_dir"}})
	if err := Lines(files, nil, v.Line); err != nil {
		t.Fatal(err)
	}
	v.End()
	chain := regexp.MustCompile(`chain [A-Z0-9]{26}`)
	file := regexp.MustCompile(`audit-[-0-9T.]+\.jsonl`)
	plain := func(all []string) (out []string) {
		for _, text := range all {
			text = strings.ReplaceAll(text, dir+string(filepath.Separator), "")
			out = append(out, file.ReplaceAllString(chain.ReplaceAllString(text, "chain C"), "OLD"))
		}
		return out
	}
	return plain(v.Faults), plain(v.Notes)
}

// TestVerifyRotation: missing records between files are a fault, rotated ones are not.
func TestVerifyRotation(t *testing.T) {
	dir := t.TempDir()
	files := rotated(t, dir, 30, 3) // five a file or so
	if len(files) != 4 {
		t.Fatalf("%d files: %v", len(files), files)
	}
	twin := filepath.Join(dir, "copy.jsonl")
	if data, err := os.ReadFile(files[2]); err != nil || os.WriteFile(twin, data, 0o600) != nil {
		t.Fatal(err)
	}
	reversed := slices.Clone(files)
	slices.Reverse(reversed)
	without := func(i int) []string { return slices.Delete(slices.Clone(files), i, i+1) }
	for _, test := range []struct {
		name  string
		files []string
		want  string // pattern of the faults; empty: none
	}{
		{"in order", files, ""},
		{"in any order", reversed, ""},
		{"the oldest is gone as well", without(0), ""},
		{"one in the middle", without(2), `^audit\.jsonl:1: records? .* of chain C (is|are) missing before this one: a file was not given, or is gone$`},
		{"the newest", without(3), `^OLD:\d: records? (\d+ to )?30 of chain C (is|are) missing behind this one, its end$`},
		{"one named twice", append(without(0), files[2]), ""},
		{"one and its copy", append(without(0), twin), `^copy\.jsonl:1: record \d+ of chain C is in OLD too$`},
	} {
		t.Run(test.name, func(t *testing.T) {
			faults, notes := verify(t, dir, test.files)
			if test.want == "" && len(faults) > 0 || test.want != "" && !regexp.MustCompile(test.want).MatchString(strings.Join(faults, "\n")) {
				t.Errorf("faults %q, want %q", faults, test.want)
			}
			if !strings.Contains(strings.Join(notes, "\n"), "the files before have been rotated away, or were not given") {
				t.Errorf("notes %q", notes)
			}
		})
	}
}

// TestVerifyEveryLine changes, removes and doubles each line of each file, one at a time.
func TestVerifyEveryLine(t *testing.T) {
	dir := t.TempDir()
	files := rotated(t, dir, 12, 10)
	for _, file := range files {
		whole, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines := bytes.SplitAfter(whole, []byte("\n"))
		lines = lines[:len(lines)-1]
		for i := range lines {
			changed := slices.Clone(lines)
			changed[i] = bytes.Replace(lines[i], []byte(`"bytes":0`), []byte(`"bytes":1`), 1)
			linked := slices.Clone(lines) // and its hash with it
			body, _, _ := bytes.Cut(changed[i], []byte(`,"hash"`))
			linked[i] = fmt.Appendf(nil, "%s,\"hash\":\"%s\"}\n", body, Key(nil).hash(body))
			for name, now := range map[string][][]byte{
				"changed":         changed,
				"changed, linked": linked,
				"removed":         slices.Delete(slices.Clone(lines), i, i+1),
				"doubled":         slices.Insert(slices.Clone(lines), i, lines[i]),
				"added":           slices.Insert(slices.Clone(lines), i, []byte("{}\n")),
			} {
				if err := os.WriteFile(file, bytes.Join(now, nil), 0o600); err != nil {
					t.Fatal(err)
				}
				if faults, _ := verify(t, dir, files); len(faults) == 0 {
					t.Errorf("%s: line %d %s: no fault", filepath.Base(file), i+1, name)
				}
			}
		}
		if err := os.WriteFile(file, whole, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if faults, notes := verify(t, dir, files); len(faults) > 0 || len(notes) > 0 {
		t.Errorf("untouched: %q, %q", faults, notes)
	}
}

// TestVerifyLost: records are linked across lost ones, and state their number.
func TestVerifyLost(t *testing.T) {
	var out bytes.Buffer
	disk := &shortDisk{out: &out}
	synctest.Test(t, func(t *testing.T) {
		l := open(t, Options{File: "-"}, disk, nil)
		for i := range 10 {
			disk.full = i >= 3 && i < 6
			l.Write(&proxy.Record{ID: fmt.Sprint(i), Start: time.Now(), Method: "GET", URL: "http://a.example/", Origin: "http://a.example"})
			synctest.Wait()
			if err := l.Err(); (err != nil) != disk.full {
				t.Errorf("record %d: Err is %v", i, err)
			}
		}
		l.Close()
	})
	v := NewVerifier(VerifyOptions{Guessed: true})
	if err := Lines([]string{"-"}, &out, v.Line); err != nil {
		t.Fatal(err)
	}
	v.End()
	if v.Faulty > 0 || v.Records != 7 || v.Lost != 3 {
		t.Errorf("%d records, %d lost, faults %q", v.Records, v.Lost, v.Faults)
	}
}

// A shortDisk fails while it is full.
type shortDisk struct {
	out  io.Writer
	full bool
}

func (d *shortDisk) Write(b []byte) (int, error) {
	if d.full {
		return 0, os.ErrPermission
	}
	return d.out.Write(b)
}

// TestErrHangs: a write that does not return counts as failing until it does.
func TestErrHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &pipe{reader: make(chan struct{}, 10)}
		l := open(t, Options{File: "-"}, out, nil)
		l.Write(&proxy.Record{Method: "GET"})
		for _, step := range []struct {
			wait time.Duration
			bad  bool
		}{{0, false}, {maxWrite, false}, {time.Millisecond, true}} {
			time.Sleep(step.wait)
			synctest.Wait()
			if err := l.Err(); (err != nil) != step.bad {
				t.Errorf("after %v: %v", step.wait, err)
			}
		}
		out.reader <- struct{}{}
		synctest.Wait()
		if err := l.Err(); err != nil {
			t.Errorf("it goes on: %v", err)
		}
		l.Close()
	})
}

// TestVerifyOtherChains: chains that are older, or were written elsewhere, are distinguished
// from a missing one.
func TestVerifyOtherChains(t *testing.T) {
	dir := t.TempDir()
	files := rotated(t, dir, 3, 10)
	at := time.Date(2000, 1, 1, 0, 0, 1, 0, time.UTC) // the test's clock begins a second before
	for _, h := range []Head{
		{Chain: "OLD", Number: 5, Time: at.Add(-time.Hour), File: files[0]},
		{Chain: "ELSEWHERE", Number: 5, Time: at, File: "/logs/other.jsonl"},
		{Chain: "NOTHING", Time: at, File: files[0]},
	} {
		if _, err := writeHead(filepath.Join(dir, "chains"), h); err != nil {
			t.Fatal(err)
		}
	}
	faults, notes := verify(t, dir, files)
	want := []string{
		"chains that were written to audit.jsonl before what is here, rotated away, removed or not given: 1, of 5 records, the last of 1999-12-31 23:00:01",
		"chains that were written to /logs/other.jsonl, which was not given: 1, of 5 records, the last of 2000-01-01 00:00:01",
	}
	if len(faults) > 0 || !slices.Equal(notes, want) {
		t.Errorf("faults %q, notes %q", faults, notes)
	}
	if _, err := writeHead(filepath.Join(dir, "chains"), Head{Chain: "MISSING", Number: 5, Time: at, File: files[len(files)-1]}); err != nil {
		t.Fatal(err)
	}
	if faults, _ := verify(t, dir, files); len(faults) != 1 || !strings.Contains(faults[0], "all 5 records of chain MISSING, written until 2000-01-01 00:00:01, are missing") {
		t.Errorf("faults %q", faults)
	}
}
