package evidence

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/internal/keyfile"
)

func newKey(seed byte) *keyfile.Key { return keyfile.New(newPrivateKey(seed)) }

func newPrivateKey(seed byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
}

const testLog = "log.example/a"

// verifierKey returns the verifier key of the log with a name.
func verifierKey(t testing.TB, name string, k *keyfile.Key) string {
	t.Helper()
	s, err := NewSigner(name, k)
	if err != nil {
		t.Fatal(err)
	}
	return s.Key()
}

// A gate writes a log into a file, as package audit does.
type gate struct {
	t     *testing.T
	dir   string
	path  string
	o     Options
	log   *Log
	fresh bool
	id    int
}

// start starts a gate with the folder dir.
func start(t *testing.T, dir string) *gate {
	g := &gate{t: t, dir: dir, path: filepath.Join(dir, "audit.jsonl")}
	g.o = Options{Name: testLog, Gate: "gate-a", Key: newKey(1), Dir: dir, Keep: time.Hour, Path: g.path, Files: files}
	g.open()
	return g
}

// files returns the files of a log, as package audit does; none for a stream.
func files(path string) (all []string) {
	for _, file := range []string{path, strings.TrimSuffix(path, ".jsonl") + "-1.jsonl", strings.TrimSuffix(path, ".jsonl") + "-1.jsonl.gz"} {
		if _, err := os.Stat(file); err == nil {
			all = append(all, file)
		}
	}
	return all
}

// stream says that a log is written to standard output.
func stream(string) []string { return nil }

func (g *gate) open() {
	g.t.Helper()
	log, err := OpenLog(g.o)
	if err != nil {
		g.t.Fatal(err)
	}
	g.log, g.fresh = log, true
}

func (g *gate) write(text []byte) {
	g.t.Helper()
	f, err := os.OpenFile(g.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		g.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(text); err != nil {
		g.t.Fatal(err)
	}
}

// checkpoint writes a checkpoint.
func (g *gate) checkpoint(end bool) {
	g.t.Helper()
	line, err := g.log.Checkpoint(g.fresh, end)
	if err != nil {
		g.t.Fatal(err)
	}
	g.write(line)
	g.fresh = false
}

// entries writes n entries, without a checkpoint behind them.
func (g *gate) entries(n int) {
	g.t.Helper()
	if g.fresh {
		g.checkpoint(false)
	}
	for range n {
		g.id++
		line := fmt.Sprintf("{\"time\":%q,\"id\":\"%d\",\"duration\":0.001,\"gate\":%q}\n", time.Now().UTC().Format(time.RFC3339Nano), g.id, g.o.Gate)
		text := AppendEntry(nil, []byte(line), 0, g.log.Size())
		g.write(text)
		g.log.Add(text)
		time.Sleep(10 * time.Millisecond) // fake clock
	}
}

// verified returns the results of a verifier for texts, each a file.
func verified(t *testing.T, o VerifyOptions, texts ...string) *Verifier {
	t.Helper()
	if o.Keys == nil {
		keys, err := ParseKeys([]string{verifierKey(t, testLog, newKey(1))})
		if err != nil {
			t.Fatal(err)
		}
		o.Keys = keys
	}
	v := NewVerifier(o)
	for i, text := range texts {
		for n, line := range strings.SplitAfter(text, "\n") {
			if line != "" {
				v.Line(fmt.Sprintf("f%d", i), Text{Number: n + 1, Text: []byte(strings.TrimSuffix(line, "\n")), Open: !strings.HasSuffix(line, "\n")})
			}
		}
	}
	v.End()
	return v
}

// read returns the lines of a file, as it is or gzipped.
func read(t *testing.T, path string) string {
	t.Helper()
	var text strings.Builder
	for line, err := range Lines(path, nil) {
		if err != nil {
			t.Fatal(err)
		}
		if text.Write(line.Text); !line.Open {
			text.WriteByte('\n')
		}
	}
	return text.String()
}

// TestVerify changes the lines of a log of two files: 0 and 1 have 3 entries each, with a checkpoint behind the
// second and the third entry of a file.
func TestVerify(t *testing.T) {
	var files []string
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		g := start(t, dir)
		for i := range 2 {
			g.path, g.fresh = filepath.Join(dir, fmt.Sprint(i)), true
			g.entries(2)
			g.checkpoint(false)
			g.entries(1)
			g.checkpoint(i == 1)
			files = append(files, read(t, g.path))
		}
	})
	lines := [2][]string{strings.SplitAfter(files[0], "\n"), strings.SplitAfter(files[1], "\n")}
	cut := func(file, from, to int) string { // without some lines
		return strings.Join(lines[file][:from], "") + strings.Join(lines[file][to:], "")
	}
	first, second := files[0], files[1]
	for _, test := range []struct {
		name  string
		files []string
		fault string // in the first; empty: none
		notes int
	}{
		{"untouched", []string{first, second}, "", 0},
		{"in another order", []string{second, first}, "", 0},
		{"one file without the one before", []string{second}, "", 1},
		{"a file that is cut off behind a checkpoint", []string{strings.Join(lines[0][:4], "")}, "", 0},
		{"a record behind the last checkpoint", []string{strings.Join(lines[0][:5], "")}, "", 1},
		{"the first file alone", []string{first}, "", 0},
		{"half a line", []string{first, second + `{"time":"2026`}, "", 1},
		{"a changed record", []string{strings.Replace(first, `"id":"2"`, `"id":"9"`, 1), second}, "f0:4: the checkpoint of 2 records of log log.example/a does not fit records 0 to 1 (up to f0:3)", 0},
		{"a changed last record", []string{first, strings.Replace(second, `"id":"6"`, `"id":"9"`, 1)}, "f1:6: the checkpoint of 6 records", 0},
		{"a changed record, and its checkpoints removed", []string{strings.Replace(cut(0, 5, 6), `"id":"3"`, `"id":"9"`, 1), second},
			"f1:1: the checkpoint of 3 records of log log.example/a does not fit records 2 to 2", 0},
		{"a removed record", []string{cut(0, 1, 2), second}, "f0:2: record 0 is missing before record 1", 0},
		{"a removed record before a checkpoint", []string{cut(0, 2, 3), second}, "f0:3: record 1 is missing before this checkpoint", 0},
		{"a record twice", []string{strings.Join(lines[0][:2], "") + lines[0][1] + strings.Join(lines[0][2:], ""), second}, "f0:3: record 0 of log log.example/a, where record 1 is expected", 0},
		{"two records swapped", []string{lines[0][0] + lines[0][2] + lines[0][1] + strings.Join(lines[0][3:], ""), second}, "f0:2: record 0 is missing before record 1", 0},
		{"a line of something else", []string{first + "nonsense\n", second}, "f0:7: no record", 0},
		{"a number with a zero before it", []string{strings.Replace(first, `"index":1}`, `"index":01}`, 1), second}, "f0:3: no record", 0},
		{"a file in two files", []string{first, second, second}, "f2:1: record 3 of log log.example/a is in f1 too", 0},
		{"the first file in two files", []string{first, first, second}, "f1:1: record 0 of log log.example/a is in f0 too", 0},
		{"the beginning of a file removed", []string{first, cut(1, 0, 1)}, "f1:1: record 3 of gate gate-a: no checkpoint line with an edge", 0},
		{"an edge removed", []string{first, strings.Replace(second, `,"edge":[`, `,"egde":[`, 1)}, "f1:1: a checkpoint of log log.example/a, and no line with an edge", 0},
		{"another edge", []string{first, strings.Replace(second, `"edge":["`, `"edge":["AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=","`, 1)}, "f1:1: the edge does not fit", 0},
		{"a changed size", []string{strings.Replace(first, `example/a\n2\n`, `example/a\n1\n`, 1), second}, "f0:4: the checkpoint of log \"log.example/a\" is not signed by its key", 0},
		{"a record after the end", []string{first, second + strings.Replace(lines[1][4], `"index":5`, `"index":6`, 1)}, "f1:7: record 6 of log log.example/a: the log has ended before it", 1},
		{"a record after the end and another checkpoint", []string{strings.Join(lines[0][:3], "") +
			strings.Replace(lines[0][3], "}\n", ",\"end\":true}\n", 1) + strings.Join(lines[0][3:], ""), second},
			"f0:6: record 2 of log log.example/a: the log has ended before it", 0},
		{"a record of another gate", []string{first, second + strings.Replace(lines[1][4], "gate-a", "gate-b", 1)}, "f1:7: record 5 of gate gate-b: no checkpoint line", 0},
		{"the form of an earlier version", []string{`{"time":"2026-01-01T00:00:00Z","id":"A","chain":"C","number":1,"prev":"0","hash":"0"}` + "\n" + first, second}, "", 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := verified(t, VerifyOptions{}, test.files...)
			switch {
			case test.fault == "" && v.Faulty > 0:
				t.Errorf("faults %q", v.Faults)
			case test.fault != "" && (v.Faulty == 0 || !strings.HasPrefix(v.Faults[0], test.fault)):
				t.Errorf("faults %q, want %q", v.Faults, test.fault)
			}
			if len(v.Notes) != test.notes {
				t.Errorf("notes %q, want %d", v.Notes, test.notes)
			}
			if strict := verified(t, VerifyOptions{Strict: true}, test.files...); strict.Faulty != v.Faulty+test.notes || len(strict.Notes) > 0 {
				t.Errorf("strict: faults %q, notes %q", strict.Faults, strict.Notes)
			}
		})
	}
}

// TestFirstFaults: the first fault of each kind is in the report, also behind many others.
func TestFirstFaults(t *testing.T) {
	v := verified(t, VerifyOptions{}, strings.Repeat("nonsense\n", 2*maxTexts)+`{"time":"2026-01-01T00:00:00Z","gate":"gate-a","index":7}`+"\n")
	if n := len(v.Faults); n != maxTexts+2 || !strings.Contains(v.Faults[maxTexts], "record 7 of gate gate-a") || v.Faulty != 2*maxTexts+1 {
		t.Errorf("%d of %d faults: %q", n, v.Faulty, v.Faults[max(0, n-2):])
	}
}

// TestKnown: a log agrees with a checkpoint that somebody has kept, or the verifier says why not.
func TestKnown(t *testing.T) {
	whole, other := t.TempDir(), t.TempDir()
	var notes []string
	synctest.Test(t, func(t *testing.T) {
		for _, dir := range []string{whole, other} {
			g := start(t, dir)
			if dir == other {
				g.id = 100
			}
			for range 3 {
				g.entries(1)
				g.checkpoint(false)
				notes = append(notes, Note(read(t, filepath.Join(dir, CheckpointFile))))
			}
		}
	})
	text := read(t, filepath.Join(whole, "audit.jsonl"))
	lines := strings.SplitAfter(text, "\n")
	for _, test := range []struct {
		name, text, note, fault string
	}{
		{"the newest", text, notes[2], ""},
		{"an earlier one", text, notes[0], ""},
		{"a later one", strings.Join(lines[:5], ""), notes[2], "log log.example/a ends with record 1, and kept has a checkpoint of 3 records"},
		{"of another history", text, notes[4], "log log.example/a does not fit the checkpoint of 2 records in kept, which is signed by its key"},
		{"of a log that is not there", "", notes[2], "log log.example/a: kept has a checkpoint of 3 records, and none of them"},
		{"nothing", text, "nonsense", "kept: the checkpoint of log \"nonsense\" can't be used"},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := verified(t, VerifyOptions{Known: []Known{{Note: test.note, Where: "kept"}}}, test.text)
			if got := strings.Join(v.Faults, "\n"); !strings.HasPrefix(got, test.fault) || test.fault == "" && got != "" {
				t.Errorf("faults %q, want %q", got, test.fault)
			}
		})
	}
	// Two checkpoints of one size with different roots.
	v := verified(t, VerifyOptions{}, text, read(t, filepath.Join(other, "audit.jsonl")))
	if v.Faulty == 0 || !strings.Contains(v.Faults[0], "has signed two histories") || strings.Count(v.Faults[0], "\nlog.example/a\n")+strings.Count(v.Faults[0], "log.example/a\n") < 2 {
		t.Errorf("faults %q, notes %q", v.Faults, v.Notes)
	}
}

// TestResume: a start finds the tree again, or begins a log with another name.
func TestResume(t *testing.T) {
	remove := func(names ...string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			for _, name := range names {
				if err := os.Remove(filepath.Join(dir, name)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	edit := func(old, new string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			path := filepath.Join(dir, "audit.jsonl")
			text := read(t, path)
			if !strings.Contains(text, old) {
				t.Fatal(text)
			}
			if err := os.WriteFile(path, []byte(strings.Replace(text, old, new, 1)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	note := func(t *testing.T, dir string) {
		path := filepath.Join(dir, CheckpointFile)
		if err := os.WriteFile(path, []byte(Note(read(t, path))), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	nothing := func(*testing.T, string) {}
	for _, test := range []struct {
		name   string
		killed int // entries behind the last checkpoint
		before func(t *testing.T, dir string)
		change func(o *Options)
		want   string // suffix of the name
		broken string
	}{
		{name: "in good order", before: nothing},
		{name: "killed", killed: 2, before: nothing},
		{name: "the checkpoint is lost", before: remove(CheckpointFile), want: "/2", broken: "audit.jsonl has records of this log, and data_dir has no checkpoint of it"},
		{name: "the state is lost", before: note},
		{name: "the state is lost, and the gate was killed", killed: 2, before: note, want: "/2", broken: "that the gate can't have written, such as record 5"},
		{name: "the log is lost", before: func(t *testing.T, dir string) {
			if err := os.Truncate(filepath.Join(dir, "audit.jsonl"), 0); err != nil {
				t.Fatal(err)
			}
		}, want: "/2", broken: "no file of the log has the records"},
		{name: "both are lost", before: remove("audit.jsonl", CheckpointFile), change: func(o *Options) { o.Known = true }, want: "/2",
			broken: "neither the checkpoint in data_dir nor the records"},
		{name: "both and the key are lost", before: remove("audit.jsonl", CheckpointFile)},
		{name: "the end is cut off", before: edit(`"index":3}`, `"index":x}`), want: "/2", broken: "ends with record 2, and a checkpoint covers 4"},
		{name: "a record is changed", before: edit(`"id":"2"`, `"id":"9"`), want: "/2", broken: "does not fit"},
		{name: "another key", before: nothing, change: func(o *Options) { o.Key = newKey(2) }, want: "/2", broken: "has no checkpoint of it by this key"},
		{name: "another name", before: nothing, change: func(o *Options) { o.Name = "other.example" }, want: "/2", broken: "or is of a log with another name"},
		{name: "the end of the last line is lost", killed: 2, before: edit(`"index":5}`+"\n", `"index":5}`), change: func(o *Options) { o.Known = true }},
		{name: "the checkpoint, the key and the id of the gate are lost", before: remove(CheckpointFile),
			change: func(o *Options) { o.Key, o.Gate = newKey(2), "gate-b" }, want: "/2",
			broken: "has no checkpoint of it by this key"},
		{name: "a file that was rotated", before: func(t *testing.T, dir string) {
			if err := os.Rename(filepath.Join(dir, "audit.jsonl"), filepath.Join(dir, "audit-1.jsonl")); err != nil {
				t.Fatal(err)
			}
		}},
		{name: "a file that was rotated and compressed", before: func(t *testing.T, dir string) {
			var b bytes.Buffer
			z := gzip.NewWriter(&b)
			z.Write([]byte(read(t, filepath.Join(dir, "audit.jsonl"))))
			z.Close()
			if err := os.WriteFile(filepath.Join(dir, "audit-1.jsonl.gz"), b.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
			os.Remove(filepath.Join(dir, "audit.jsonl"))
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				g := start(t, dir)
				g.entries(4)
				g.checkpoint(false)
				g.entries(test.killed)
				test.before(t, dir)
				if test.change != nil {
					test.change(&g.o)
				}
				g.open()
				base := g.o.Name
				if g.log.Name() != base+test.want || !strings.Contains(g.log.Broken(), test.broken) || (test.broken == "") != (g.log.Broken() == "") {
					t.Fatalf("log %s, broken %q; want %s, %q", g.log.Name(), g.log.Broken(), base+test.want, test.broken)
				}
				if continued := test.want == "" && !strings.HasPrefix(test.name, "both"); continued && (g.log.Size() != int64(4+test.killed) || g.log.Resumed() != int64(test.killed)) {
					t.Errorf("%d records, %d resumed", g.log.Size(), g.log.Resumed())
				}
				if text, _ := os.ReadFile(g.path); len(text) > 0 && text[len(text)-1] != '\n' {
					g.write([]byte("\n")) // as package audit does
				}
				g.entries(1)
				g.checkpoint(true)
				if test.want != "" || strings.HasPrefix(test.name, "both") {
					return
				}
				var texts []string
				for _, file := range files(g.path) {
					texts = append(texts, read(t, file))
				}
				v := verified(t, VerifyOptions{Known: []Known{{Note: Note(read(t, filepath.Join(dir, CheckpointFile))), Where: "data_dir"}}}, texts...)
				if v.Faulty > 0 || len(v.Notes) > 0 || v.Entries != 5+test.killed {
					t.Errorf("%d records, faults %q, notes %q", v.Entries, v.Faults, v.Notes)
				}
				if resumed := strings.Contains(texts[0], fmt.Sprintf(`"resumed":%d}`, test.killed)); resumed != (test.killed > 0) {
					t.Errorf("resumed is stated: %t", resumed)
				}
			})
		})
	}
}

// forge adds a record behind the end of the log, without its key, with a time in the form of a record.
func (g *gate) forge(index int64, at string) {
	g.t.Helper()
	g.write(AppendEntry(nil, fmt.Appendf(nil, "{\"time\":%q,\"id\":\"forged\",\"duration\":0.001,\"gate\":%q}\n", at, g.o.Gate), 0, index))
}

// TestAdded: records that were added while the gate was stopped are never signed, unless they may be those of a kill.
func TestAdded(t *testing.T) {
	const month = 30 * 24 * time.Hour
	for _, test := range []struct {
		name    string
		end     bool // the gate ended, else it was killed
		uncut   bool // the line of the end is still there
		again   bool // the gate has started again, without a request, and was killed
		added   int
		span    time.Duration // from the last checkpoint to the last of them
		at      string        // the time of all, in place of that
		resumed bool
		noted   bool // audit --verify has a note, not a fault
	}{
		{name: "killed, over a month", added: 1000, span: month},
		{name: "killed, later", added: 1, span: maxResumed + 10*time.Millisecond, noted: true},
		{name: "killed, before", added: 1, span: -month},
		{name: "killed, just before", added: 1, span: -maxWaited - 10*time.Millisecond},
		{name: "killed, while it waited", added: 1, span: -maxWaited + 10*time.Millisecond, resumed: true},
		{name: "killed, no time", added: 1, at: "yesterday"},
		{name: "killed, in time", added: 1, span: maxResumed - 10*time.Millisecond, resumed: true}, // SECURITY.md says so
		{name: "ended, over a month", end: true, added: 1000, span: month},
		{name: "ended, in time", end: true, added: 1, span: time.Second, noted: true},
		{name: "ended, with its line", end: true, uncut: true, added: 1, span: time.Second},
		{name: "ended, started and killed", end: true, again: true, added: 1, span: time.Second, noted: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				g := start(t, dir)
				g.entries(3)
				g.checkpoint(false)
				if last := read(t, g.path); test.end {
					if g.checkpoint(true); !test.uncut {
						if err := os.WriteFile(g.path, []byte(last), 0o600); err != nil {
							t.Fatal(err)
						}
					}
				}
				if test.again {
					g.open()
				}
				signed := time.Now()
				for i := range test.added {
					at := signed.Add(test.span * time.Duration(i+1) / time.Duration(test.added))
					g.forge(int64(3+i), cmp.Or(test.at, at.UTC().Format(time.RFC3339Nano)))
				}
				time.Sleep(2 * month) // fake clock
				g.open()
				if test.resumed {
					if g.log.Name() != testLog || g.log.Resumed() != int64(test.added) {
						t.Errorf("log %s, %d resumed, broken %q", g.log.Name(), g.log.Resumed(), g.log.Broken())
					}
					return
				}
				if want := "has records behind the last checkpoint that the gate can't have written"; g.log.Name() != testLog+"/2" || g.log.Size() != 0 || !strings.Contains(g.log.Broken(), want) {
					t.Errorf("log %s of %d records, broken %q", g.log.Name(), g.log.Size(), g.log.Broken())
				}
				g.entries(1)
				g.checkpoint(true)
				v := verified(t, VerifyOptions{}, read(t, g.path))
				if (v.Faulty == 0) != test.noted || len(v.Notes) == 0 && test.noted {
					t.Errorf("faults %q, notes %q", v.Faults, v.Notes)
				}
			})
		})
	}
}

// TestResumedLate: a line that covers records of a kill must not cover others.
func TestResumedLate(t *testing.T) {
	for span, faults := range map[time.Duration]int{time.Second: 0, time.Minute: 1, -time.Minute: 1} {
		for _, rotated := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				g := start(t, t.TempDir())
				g.entries(3)
				g.checkpoint(false)
				text := AppendEntry(nil, fmt.Appendf(nil, "{\"time\":%q,\"id\":\"4\",\"gate\":\"gate-a\"}\n", time.Now().Add(span).UTC().Format(time.RFC3339Nano)), 0, 3)
				g.write(text)
				g.log.Add(text)
				texts := []string{read(t, g.path)}
				g.log.resumed = 1 // as a start of an earlier version has covered it
				if rotated {
					g.path += ".new"
				}
				g.fresh = true
				g.checkpoint(true)
				if rotated {
					texts = append(texts, read(t, g.path))
				} else {
					texts[0] = read(t, g.path)
				}
				v := verified(t, VerifyOptions{}, texts...)
				if v.Faulty != faults || faults > 0 && !strings.Contains(v.Faults[0], "a start after a kill has covered records 3 to 3") {
					t.Errorf("%v, rotated %t: faults %q, notes %q", span, rotated, v.Faults, v.Notes)
				}
			})
		}
	}
}

// TestMoved: an operator may write the log elsewhere. That does not hide what is wrong with the files before.
func TestMoved(t *testing.T) {
	whole := func(text string) string { return text }
	for _, test := range []struct {
		name    string
		entries int
		stream  bool                     // it was written to standard output before
		left    func(text string) string // what is left of the file before; nil: the operator has moved it, too
		want    string
		broken  string
	}{
		{name: "the path alone", entries: 3, left: whole, want: "/2"},
		{name: "the file, too", entries: 3, want: "/2"},
		{name: "a stream before", entries: 3, stream: true, want: "/2"},
		{name: "no record yet", left: whole},
		{name: "a file that was cut", entries: 3, left: func(text string) string { return text[:strings.Index(text, `{"time":"2000-01-01T00:00:00.02Z"`)] }, want: "/2",
			broken: "ends with record 1, and a checkpoint covers 3"},
		{name: "a file that was emptied", entries: 3, left: func(string) string { return "" }, want: "/2", broken: "no file of the log has the records"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				g := start(t, dir)
				if test.stream {
					g.o.Path = "-"
					g.open()
				}
				g.entries(test.entries)
				g.checkpoint(true)
				old := g.o.Path
				switch text := read(t, g.path); {
				case test.left == nil:
					if err := os.Rename(g.path, filepath.Join(dir, "moved.jsonl")); err != nil {
						t.Fatal(err)
					}
				default:
					if err := os.WriteFile(g.path, []byte(test.left(text)), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				g.path = filepath.Join(dir, "new.jsonl")
				g.o.Path = g.path
				g.open()
				if test.want == "" || test.broken != "" {
					old = ""
				}
				if g.log.Name() != testLog+test.want || g.log.Moved() != old || !strings.Contains(g.log.Broken(), test.broken) || (g.log.Broken() == "") != (test.broken == "") {
					t.Errorf("log %s, moved %q, broken %q", g.log.Name(), g.log.Moved(), g.log.Broken())
				}
				g.entries(2)
				g.checkpoint(true)
				g.open() // with the same path
				if g.log.Name() != testLog+test.want || g.log.Moved()+g.log.Broken() != "" || g.log.Size() != 2 {
					t.Errorf("started again: log %s of %d records, moved %q, broken %q", g.log.Name(), g.log.Size(), g.log.Moved(), g.log.Broken())
				}
			})
		})
	}
}

// TestResumeOld: with a checkpoint in data_dir that is older than the log, as after a restore, the log goes on behind its last
// entry. A log that was given up is not continued, although the old checkpoint fits it.
func TestResumeOld(t *testing.T) {
	for _, test := range []struct {
		name  string
		lost  bool   // the entries behind the old checkpoint are, before a gate starts with the newer one
		where string // of the lines of the second log; empty: in the file of the first
		want  string
		size  int64
	}{
		{name: "one log", want: testLog, size: 3},
		{name: "a second log", lost: true, want: testLog + "/3"},
		{name: "a second log in another file", lost: true, where: "new.jsonl", want: testLog + "/3"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				g := start(t, dir)
				g.entries(2)
				g.checkpoint(false)
				old := read(t, filepath.Join(dir, CheckpointFile))
				short := read(t, g.path)
				g.entries(1)
				g.checkpoint(false)
				if test.lost {
					if err := os.WriteFile(g.path, []byte(short), 0o600); err != nil {
						t.Fatal(err)
					}
					if test.where != "" {
						g.path = filepath.Join(dir, test.where)
						g.o.Path = g.path
					}
					g.open()
					g.entries(1)
					g.checkpoint(false)
				}
				if err := os.WriteFile(filepath.Join(dir, CheckpointFile), []byte(old), 0o600); err != nil {
					t.Fatal(err)
				}
				g.open()
				if g.log.Name() != test.want || g.log.Size() != test.size || (g.log.Broken()+g.log.Moved() != "") != strings.HasSuffix(test.want, "/3") {
					t.Errorf("log %s of %d records, broken %q; want %s of %d", g.log.Name(), g.log.Size(), g.log.Broken(), test.want, test.size)
				}
			})
		})
	}
}

// TestResumeStream: on a stream the log goes on behind the last checkpoint. Entries behind it that a killed gate has
// written are noted, unless they are too many.
func TestResumeStream(t *testing.T) {
	for killed, faults := range map[int]int{0: 0, 3: 0, 600: 1} {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			g := start(t, dir)
			g.entries(2)
			g.checkpoint(false)
			g.entries(killed)
			g.o.Files = stream
			g.open()
			if g.log.Name() != testLog || g.log.Size() != 2 || g.log.Broken() != "" {
				t.Fatalf("log %s of %d records, broken %q", g.log.Name(), g.log.Size(), g.log.Broken())
			}
			g.entries(2)
			g.checkpoint(true)
		})
		v := verified(t, VerifyOptions{}, read(t, filepath.Join(dir, "audit.jsonl")))
		if v.Faulty != faults || len(v.Notes) != min(killed, 1)-faults {
			t.Errorf("%d records behind the checkpoint: faults %q, notes %q", killed, v.Faults, v.Notes)
		}
	}
}

// TestEnded: a gate that does not own the folder has a log of its own, and its last checkpoint is kept.
func TestEnded(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		for _, id := range []string{"one", "two"} {
			g := start(t, dir)
			g.o.Ends, g.o.Gate = true, id
			g.open()
			g.entries(2)
			g.checkpoint(false)
			g.entries(1)
			g.checkpoint(true)
		}
	})
	ended, err := Ended(dir)
	if err != nil || len(ended) != 2 || Origin(ended[1].Checkpoint) != testLog+"/two" || !strings.Contains(ended[1].Checkpoint, "\n3\n") || !ended[1].End {
		t.Fatalf("%v: %+v", err, ended)
	}
	text := read(t, filepath.Join(dir, "audit.jsonl"))
	v := verified(t, VerifyOptions{}, text)
	if v.Faulty > 0 || len(v.Logs) != 2 {
		t.Errorf("faults %q, logs %v", v.Faults, v.Logs)
	}
	var without strings.Builder
	for line := range strings.Lines(text) {
		if !strings.Contains(line, `"gate":"two"`) {
			without.WriteString(line)
		}
	}
	v = verified(t, VerifyOptions{Known: []Known{{Note: ended[1].Checkpoint, Where: EndedFile, Ended: true, Time: ended[1].Time}}}, without.String())
	if v.Faulty != 1 || !strings.HasPrefix(v.Faults[0], "log log.example/a/two: audit-ended has a checkpoint of 3 records") {
		t.Errorf("faults %q, notes %q", v.Faults, v.Notes)
	}
}

// TestOtherBeginning: the holder of the key can't put other records in front of a part of the true log: without a checkpoint
// between them, and with one of the same size.
func TestOtherBeginning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := start(t, t.TempDir())
		g.entries(5)
		g.checkpoint(false)
		begin := len(read(t, g.path))
		g.open()
		g.checkpoint(false)
		g.fresh = true
		g.entries(2)
		g.checkpoint(true)
		text := read(t, g.path)
		rest := text[begin:] // a line with an edge, of 5 records, and two records
		edge := rest[:strings.Index(rest, "\n")+1]
		var line Line
		if err := json.Unmarshal([]byte(edge), &line); err != nil || line.Edge == nil {
			t.Fatalf("%v: %s", err, edge)
		}
		known := VerifyOptions{Known: []Known{{Note: line.Checkpoint, Where: "a copy"}}}
		if v := verified(t, known, text); v.Faulty > 0 {
			t.Fatalf("the true log: %q", v.Faults)
		}
		for _, sizes := range [][2]int{{4, 3}, {5, 2}, {4, 1}, {0, 5}, {0, 6}} { // records with a checkpoint behind them, and without
			other := start(t, t.TempDir())
			other.id = 100
			other.entries(sizes[0])
			other.checkpoint(false)
			other.entries(sizes[1])
			others := read(t, other.path)
			for name, texts := range map[string][]string{
				"in one file": {others + rest}, "in two files": {others, rest}, "without a record": {others + edge}, "without a record, in two files": {others, edge},
			} {
				if v := verified(t, known, texts...); v.Faulty == 0 {
					t.Errorf("%v other records, %s: accepted with notes %q", sizes, name, v.Notes)
				}
			}
		}
	})
}

// TestNoTime: a record without a time can't hide from the bounds on times.
func TestNoTime(t *testing.T) {
	g := start(t, t.TempDir())
	g.checkpoint(false)
	for _, when := range []string{"no time", "0001-01-01T00:00:00Z"} {
		text := AppendEntry(nil, fmt.Appendf(nil, "{\"time\":%q,\"id\":\"1\",\"gate\":\"gate-a\"}\n", when), 0, g.log.Size())
		g.write(text)
		g.log.Add(text)
	}
	g.checkpoint(true)
	if v := verified(t, VerifyOptions{}, read(t, g.path)); v.Faulty != 2 || !strings.Contains(fmt.Sprint(v.Faults), "has no time") {
		t.Errorf("faults %q", v.Faults)
	}
}

// TestChangedTail: a record that a kept checkpoint covers can't be changed behind a line with an edge before it, in whatever
// order the files are given.
func TestChangedTail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		g := start(t, dir)
		g.entries(9)
		g.checkpoint(false)
		before, copied := read(t, g.path), t.TempDir()
		if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		withoutPath := Note(read(t, filepath.Join(copied, CheckpointFile)))
		if err := os.WriteFile(filepath.Join(copied, CheckpointFile), []byte(withoutPath), 0o600); err != nil {
			t.Fatal(err)
		}
		g.entries(1)
		entry := read(t, g.path)[len(before):]
		g.checkpoint(false)
		lines := strings.Split(strings.TrimSpace(read(t, g.path)), "\n")
		var kept Line
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &kept); err != nil {
			t.Fatal(err)
		}
		// With another record in its place the log goes on from the checkpoint of 9 records.
		other := start(t, copied)
		other.id = 100
		other.entries(3)
		other.checkpoint(true)
		changed := read(t, other.path)[len(before):]
		known := VerifyOptions{Known: []Known{{Note: kept.Checkpoint, Where: "a copy"}}}
		for _, texts := range [][]string{{before + entry, changed}, {changed, before + entry}} {
			if v := verified(t, known, texts...); v.Faulty == 0 {
				t.Errorf("accepted with notes %q", v.Notes)
			}
		}
		if v := verified(t, VerifyOptions{}, changed, before+entry); v.Faulty > 0 {
			t.Errorf("without a kept checkpoint: %q", v.Faults)
		}
	})
}
