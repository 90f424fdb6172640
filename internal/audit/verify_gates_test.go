package audit

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"robotsgate/proxy"
)

// writeGate writes two records of a gate to a file, and keeps the heads in dir/chains.
func writeGate(t *testing.T, dir, gate, file string) string {
	t.Helper()
	path := filepath.Join(dir, file)
	l := open(t, Options{Gate: gate, File: path, Keep: 10, Heads: filepath.Join(dir, "chains")}, nil, nil)
	for i := range 2 {
		l.Write(&proxy.Record{ID: fmt.Sprint(i), Start: time.Now(), Method: "GET", URL: "http://a.example/", Origin: "http://a.example"})
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestVerifyGates: the chains of other gates are checked without heads, in files of their own only.
func TestVerifyGates(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	before := writeGate(t, a, "", "before.jsonl") // by an earlier version
	own, other := writeGate(t, a, "a", "a.jsonl"), writeGate(t, b, "b", "b.jsonl")
	both := filepath.Join(a, "both.jsonl")
	join := func(files ...string) {
		t.Helper()
		var all []byte
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, text...)
		}
		if err := os.WriteFile(both, all, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	join(own, other)
	for _, test := range []struct {
		name      string
		files     []string
		gate      string // of the heads, those of a
		only      bool
		records   int
		unchecked int
		fault     string
	}{
		{"one gate", []string{before, own}, "a", false, 4, 0, ""},
		{"two gates", []string{before, own, other}, "a", false, 6, 1, ""},
		{"whose heads is not known", []string{before, own, other}, "", false, 6, 0, "is not known to this folder"},
		{"only one", []string{before, own, other}, "a", true, 4, 0, ""},
		{"in one file", []string{before, both}, "a", false, 6, 0, "is not known to this folder"},
		{"in one file, only one", []string{before, both}, "a", true, 4, 0, ""},
		{"the gate's own log is missing", []string{before, other}, "a", false, 4, 1, ""},
		{"nothing but another's", []string{other}, "a", true, 0, 0, "there is no record in what was given"},
	} {
		t.Run(test.name, func(t *testing.T) {
			heads, err := Heads(filepath.Join(a, "chains"))
			if err != nil {
				t.Fatal(err)
			}
			v := NewVerifier(VerifyOptions{Files: test.files, Heads: heads, Gate: test.gate, Only: test.only, Words: VerifyWords{Folder: "folder"}})
			if err := Lines(test.files, nil, v.Line); err != nil {
				t.Fatal(err)
			}
			v.End()
			if v.Records != test.records || v.Unchecked != test.unchecked || (test.fault == "") != (v.Faulty == 0) || !strings.Contains(strings.Join(v.Faults, "\n"), test.fault) {
				t.Errorf("%d records, %d unchecked, faults %q, notes %q", v.Records, v.Unchecked, v.Faults, v.Notes)
			}
		})
	}
}

// TestVerifyGateOfChain: all records of a chain name the same gate.
func TestVerifyGateOfChain(t *testing.T) {
	dir := t.TempDir()
	path := writeGate(t, dir, "a", "a.jsonl")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	first, last, _ := bytes.Cut(text, []byte("\n"))
	changed := append(append(first, '\n'), bytes.Replace(last, []byte(`"gate":"a"`), []byte(`"gate":"b"`), 1)...)
	if err := os.WriteFile(path, changed, 0o600); err != nil {
		t.Fatal(err)
	}
	faults, _ := verify(t, dir, []string{path})
	if all := strings.Join(faults, "\n"); !strings.Contains(all, "names another gate") || !strings.Contains(all, "has been changed") {
		t.Errorf("got %q", faults)
	}
}
