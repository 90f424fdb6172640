package evidence

import (
	"bytes"
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
	"robotsgate/internal/record"
)

func newKey(seed byte) *keyfile.Key {
	return keyfile.New(ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize)))
}

const testLog = "log.example/a"

// testKey returns the verifier of the logs of newKey(1).
func testKey(t testing.TB) *Key {
	t.Helper()
	s, err := NewSigner(testLog, newKey(1))
	if err != nil {
		t.Fatal(err)
	}
	k, err := ParseKey(s.Key())
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// A gate writes a log into a file, as package audit does.
type gate struct {
	t   *testing.T
	o   Options
	log *Log
	id  int
}

// start starts a gate with the folder dir. Its file is audit.jsonl there.
func start(t *testing.T, dir string) *gate {
	g := &gate{t: t, o: Options{Name: testLog, Gate: "gate-a", Key: newKey(1), Place: record.ReadPlace, Dir: dir, Path: filepath.Join(dir, "audit.jsonl")}}
	g.open()
	return g
}

// open starts the gate again: it removes half a line, and begins a file for a new log.
func (g *gate) open() {
	g.t.Helper()
	g.o.Files = nil
	for _, file := range []string{g.o.Path, strings.TrimSuffix(g.o.Path, ".jsonl") + "-1.jsonl"} {
		if _, err := os.Stat(file); err == nil {
			g.o.Files = append(g.o.Files, file)
		}
	}
	var err error
	if g.log, err = OpenLog(g.o); err != nil {
		g.t.Fatal(err)
	}
	if info, err := os.Stat(g.o.Path); err != nil || info.Size() == 0 {
		return
	}
	if g.log.Continues > 0 {
		err = os.Truncate(g.o.Path, g.log.Continues)
	} else {
		err = os.Rename(g.o.Path, g.o.Path+".before")
	}
	if err != nil {
		g.t.Fatal(err)
	}
}

func (g *gate) write(text []byte) {
	g.t.Helper()
	f, err := os.OpenFile(g.o.Path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
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
	info, err := os.Stat(g.o.Path)
	size := int64(0)
	if err == nil {
		size = info.Size()
	}
	line, err := g.log.Checkpoint(size, end)
	if err != nil {
		g.t.Fatal(err)
	}
	g.write(line)
}

// entries writes n entries, with a checkpoint before them.
func (g *gate) entries(n int) {
	g.t.Helper()
	g.checkpoint(false)
	for range n {
		g.id++
		text := g.entry(g.log.Size(), time.Now())
		g.write(text)
		g.log.Add(text)
		time.Sleep(10 * time.Millisecond) // fake clock
	}
}

func (g *gate) entry(index int64, at time.Time) []byte {
	line := fmt.Appendf(nil, "{\"time\":%q,\"id\":\"%d\",\"duration\":0.001,\"gate\":%q}\n", at.UTC().Format(time.RFC3339Nano), g.id, g.o.Gate)
	return record.AppendPlace(nil, line, 0, index)
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// verified returns the results of a verifier for texts, each a file.
func verified(t *testing.T, o VerifyOptions, texts ...string) *Verifier {
	t.Helper()
	o.Key, o.Place = testKey(t), record.ReadPlace
	v := NewVerifier(o)
	for i, text := range texts {
		for n, line := range strings.SplitAfter(text, "\n") {
			v.Line(fmt.Sprintf("f%d", i), Text{Number: n + 1, Text: []byte(strings.TrimSuffix(line, "\n")), Open: !strings.HasSuffix(line, "\n")})
		}
	}
	v.End()
	return v
}

// TestVerify changes the lines of a log of two files, with 3 entries each: lines 1, 4 and 6 are checkpoints.
func TestVerify(t *testing.T) {
	var files []string
	var states []*State
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		g := start(t, dir)
		for i := range 2 {
			g.o.Path = filepath.Join(dir, fmt.Sprint(i))
			g.entries(2)
			g.entries(1)
			g.checkpoint(i == 1)
			files = append(files, read(t, g.o.Path))
			s, err := ReadState(filepath.Join(dir, CheckpointFile))
			if err == nil {
				err = s.Verify(testKey(t))
			}
			if err != nil {
				t.Fatal(err)
			}
			states = append(states, s)
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
		fault string // the first; empty: none
		notes int
	}{
		{"untouched", []string{first, second}, "", 0},
		{"the first file alone", []string{first}, "", 0},
		{"cut off behind a checkpoint", []string{strings.Join(lines[0][:4], "")}, "", 0},
		{"a record behind the last checkpoint", []string{strings.Join(lines[0][:5], "")}, "", 1},
		{"half a line", []string{first, second + `{"time":"2026`}, "", 1},
		{"a changed record", []string{strings.Replace(first, `"id":"2"`, `"id":"9"`, 1), second}, "f0:4: the checkpoint of 2 records of log log.example/a does not fit records 0 to 1 (up to f0:3)", 0},
		{"a changed last record", []string{first, strings.Replace(second, `"id":"6"`, `"id":"9"`, 1)}, "f1:6: the checkpoint of 6 records", 0},
		{"a changed record, and its checkpoints removed", []string{strings.Replace(cut(0, 5, 6), `"id":"3"`, `"id":"9"`, 1), second},
			"f1:1: the checkpoint of 3 records of log log.example/a does not fit records 2 to 2", 0},
		{"a removed record", []string{cut(0, 1, 2), second}, "f0:2: records 0 to 0 are missing before this line", 0},
		{"a removed record before a checkpoint", []string{cut(0, 2, 3), second}, "f0:3: records 1 to 1 are missing before this line", 0},
		{"a removed file", []string{first, cut(1, 0, 4)}, "f1:1: records 3 to 4 are missing", 0},
		{"a record twice", []string{strings.Join(lines[0][:2], "") + lines[0][1] + strings.Join(lines[0][2:], ""), second}, "f0:3: record 0 of log log.example/a, where record 1 is expected", 0},
		{"two records swapped", []string{lines[0][0] + lines[0][2] + lines[0][1] + strings.Join(lines[0][3:], ""), second}, "f0:2: records 0 to 0 are missing", 0},
		{"a checkpoint that was moved", []string{first, second + lines[0][3]}, "f1:7: the checkpoint of 2 records of log log.example/a stands behind record 5", 0},
		{"a line of something else", []string{first + "nonsense\n", second}, "f0:7: no record", 0},
		{"a number with a zero before it", []string{strings.Replace(first, `"index":1}`, `"index":01}`, 1), second}, "f0:3: no record", 0},
		{"a record without a time", []string{strings.Replace(first, `{"time":"2000`, `{"time":"x`, 1), second}, "f0:2: no record", 0},
		{"a file in two files", []string{first, second, second}, "f2:1: the checkpoint of 3 records of log log.example/a stands behind record 5", 0},
		{"a changed size", []string{strings.Replace(first, `example/a\n2\n`, `example/a\n1\n`, 1), second}, "f0:4: the checkpoint of log \"log.example/a\" is not signed by the key", 0},
		{"a record after the end", []string{first, second + strings.Replace(lines[1][4], `"index":5`, `"index":6`, 1)}, "f1:7: record 6 of log log.example/a: the log has ended before it", 1},
		{"a record long after the last checkpoint", []string{strings.Join(lines[0][:4], "") + strings.Replace(lines[0][4], `"2000`, `"2001`, 1)}, "f0:5: no checkpoint covers records 2 to 2", 0},
		{"a record long before the last checkpoint", []string{strings.Join(lines[0][:4], "") + strings.Replace(lines[0][4], `"2000`, `"1999`, 1)}, "f0:5: no checkpoint covers records 2 to 2", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := verified(t, VerifyOptions{}, test.files...)
			if len(v.Faults) != v.Faulty || test.fault == "" && v.Faulty > 0 || test.fault != "" && (v.Faulty == 0 || !strings.HasPrefix(v.Faults[0], test.fault)) {
				t.Errorf("faults %q, want %q", v.Faults, test.fault)
			}
			if len(v.Notes) != test.notes {
				t.Errorf("notes %q, want %d", v.Notes, test.notes)
			}
		})
	}
	t.Run("without the first file", func(t *testing.T) {
		if v := verified(t, VerifyOptions{}, second); v.First != 3 {
			t.Errorf("it begins with record %d", v.First)
		}
	})
	for name, texts := range map[string][]string{"from the first file's end": {second}, "from there, with the first file": {first, second}} {
		t.Run(name, func(t *testing.T) {
			if v := verified(t, VerifyOptions{From: states[0]}, texts...); v.Faulty > 0 || v.First != 3 || v.Size() != 6 {
				t.Errorf("records %d to %d, %q", v.First, v.Size(), v.Faults)
			}
			if v := verified(t, VerifyOptions{From: states[0]}, first, cut(1, 1, 2)); v.Faulty == 0 {
				t.Error("a removed record is not found")
			}
		})
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
				s, err := ReadState(filepath.Join(dir, CheckpointFile))
				if err != nil {
					t.Fatal(err)
				}
				notes = append(notes, s.Note)
			}
		}
	})
	text, others := read(t, filepath.Join(whole, "audit.jsonl")), read(t, filepath.Join(other, "audit.jsonl"))
	lines := strings.SplitAfter(text, "\n")
	for _, test := range []struct {
		name, text, note, fault string
	}{
		{"the newest", text, notes[2], ""},
		{"an earlier one", text, notes[0], ""},
		{"a later one", strings.Join(lines[:5], ""), notes[2], "log log.example/a ends with record 1, and kept has a checkpoint of 3 records"},
		{"of another history", text, notes[4], "log log.example/a does not fit the checkpoint of 2 records in kept, which is signed by its key"},
		{"of a log that is not there", "", notes[2], "log log.example/a ends with record -1, and kept has a checkpoint of 3 records"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, err := testKey(t).Open(test.note)
			if err != nil {
				t.Fatal(err)
			}
			v := verified(t, VerifyOptions{Known: &c, KnownFile: "kept"}, test.text)
			if got := strings.Join(v.Faults, "\n"); !strings.HasPrefix(got, test.fault) || test.fault == "" && got != "" {
				t.Errorf("faults %q, want %q", got, test.fault)
			}
		})
	}
	// Two checkpoints of one size with different roots.
	if v := verified(t, VerifyOptions{}, text, strings.SplitAfter(others, "\n")[len(lines)-2]); v.Faulty != 1 || !strings.Contains(v.Faults[0], "has signed two histories") {
		t.Errorf("faults %q, notes %q", v.Faults, v.Notes)
	}
}

// TestResume: a start finds the tree again, or begins a log with another name.
func TestResume(t *testing.T) {
	remove := func(names ...string) func(g *gate) {
		return func(g *gate) {
			for _, name := range names {
				if err := os.Remove(filepath.Join(g.o.Dir, name)); err != nil {
					g.t.Fatal(err)
				}
			}
		}
	}
	rotated := func(g *gate) {
		if err := os.Rename(g.o.Path, filepath.Join(g.o.Dir, "audit-1.jsonl")); err != nil {
			g.t.Fatal(err)
		}
	}
	moved := func(g *gate) { g.o.Path = filepath.Join(g.o.Dir, "new.jsonl") }
	empty := func(g *gate) { write(g.t, g.o.Path, "") }
	both := func(all ...func(g *gate)) func(g *gate) {
		return func(g *gate) {
			for _, f := range all {
				f(g)
			}
		}
	}
	for _, test := range []struct {
		name   string
		killed int // entries behind the last checkpoint
		before func(g *gate)
		want   string // suffix of the name; "new": it begins again
		broken string
		moved  bool
	}{
		{name: "in good order"},
		{name: "killed", killed: 2},
		{name: "half a line", killed: 2, before: func(g *gate) { g.write([]byte(`{"time":"2026`)) }},
		{name: "a probe that was not removed", killed: 2, before: func(g *gate) { g.write([]byte("    \n")) }},
		{name: "killed when the file was rotated", before: rotated},
		{name: "killed when a file was begun", before: both(rotated, empty)},
		{name: "the checkpoint is lost", before: remove(CheckpointFile), want: "/2", broken: "data_dir has no checkpoint of it"},
		{name: "the checkpoint is damaged", before: func(g *gate) { write(g.t, filepath.Join(g.o.Dir, CheckpointFile), "nonsense") }, want: "/2", broken: "or the checkpoint there is damaged"},
		{name: "the tree is lost", before: func(g *gate) {
			path := filepath.Join(g.o.Dir, CheckpointFile)
			note, _, _ := strings.Cut(read(g.t, path), "\n{")
			write(g.t, path, note+"\n")
		}, want: "/2", broken: "the checkpoint there is damaged"},
		{name: "the log is lost", before: empty, want: "/2", broken: "is shorter than at its last checkpoint"},
		{name: "both are lost", before: remove("audit.jsonl", CheckpointFile), want: "new"},
		{name: "the end is cut off", before: func(g *gate) {
			text := read(g.t, g.o.Path)
			write(g.t, g.o.Path, text[:strings.Index(text, `"index":3}`)])
		}, want: "/2", broken: "is shorter than at its last checkpoint"},
		{name: "something else was added", before: func(g *gate) { g.write([]byte("nonsense\n")) }, want: "/2", broken: "no record"},
		{name: "another key", before: func(g *gate) { g.o.Key = newKey(2) }, want: "/2", broken: "data_dir has no checkpoint of it by this key"},
		{name: "another name", before: func(g *gate) { g.o.Name = "other.example" }, want: "/2", broken: "data_dir has no checkpoint of it"},
		{name: "another path", before: moved, want: "/2", moved: true},
		{name: "another path, and the file was moved", before: both(remove("audit.jsonl"), moved), want: "/2", moved: true},
		{name: "another path, and the file was emptied", before: both(empty, moved), want: "/2", broken: "is shorter than at its last checkpoint"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := start(t, t.TempDir())
				g.entries(4)
				g.checkpoint(false)
				if test.killed > 0 {
					g.entries(test.killed)
				}
				before := g.o.Path
				if test.before != nil {
					test.before(g)
				}
				g.open()
				want, size := g.o.Name+test.want, int64(0)
				switch test.want {
				case "new":
					want = g.o.Name
				case "":
					size = int64(4 + test.killed)
				}
				if g.log.Name() != want || g.log.Size() != size || !strings.Contains(g.log.Broken, test.broken) || (test.broken == "") != (g.log.Broken == "") || (g.log.Moved == before) != test.moved {
					t.Fatalf("log %s of %d records, broken %q, moved %q; want %s of %d, %q", g.log.Name(), g.log.Size(), g.log.Broken, g.log.Moved, want, size, test.broken)
				}
				g.entries(1)
				g.checkpoint(true)
				if g.o.Key.ID() != newKey(1).ID() || g.o.Name != testLog {
					return
				}
				var texts []string
				if file := filepath.Join(g.o.Dir, "audit-1.jsonl"); size > 0 && len(g.o.Files) > 0 && g.o.Files[len(g.o.Files)-1] == file {
					texts = append(texts, read(t, file))
				}
				text := read(t, g.o.Path)
				if v := verified(t, VerifyOptions{}, append(texts, text)...); v.Faulty > 0 || v.Size() != size+1 || len(v.Notes) > 0 {
					t.Errorf("%d records, faults %q, notes %q", v.Size(), v.Faults, v.Notes)
				}
				if resumed := strings.Contains(text, fmt.Sprintf(`"resumed":%d}`, test.killed)); resumed != (test.killed > 0) {
					t.Errorf("resumed is stated: %t", resumed)
				}
				g.open()
				if g.log.Name() != want || g.log.Broken+g.log.Moved != "" || g.log.Size() != size+1 {
					t.Errorf("started again: log %s of %d records, broken %q, moved %q", g.log.Name(), g.log.Size(), g.log.Broken, g.log.Moved)
				}
			})
		})
	}
}

// TestResumeOld: with an older checkpoint in data_dir, as after a restore, the log goes on behind its last entry. A log that has
// a successor in the file is not continued, although the old checkpoint fits it.
func TestResumeOld(t *testing.T) {
	for lost, want := range map[bool]string{false: testLog, true: testLog + "/3"} {
		synctest.Test(t, func(t *testing.T) {
			dir := t.TempDir()
			g := start(t, dir)
			g.entries(2)
			g.checkpoint(false)
			old := read(t, filepath.Join(dir, CheckpointFile))
			g.entries(1)
			g.checkpoint(false)
			if lost {
				write(t, g.o.Path, "")
				g.open()
				g.entries(9)
				g.checkpoint(false)
			}
			write(t, filepath.Join(dir, CheckpointFile), old)
			g.open()
			if g.log.Name() != want || g.log.Size() != map[bool]int64{false: 3}[lost] || (g.log.Broken != "") != lost {
				t.Errorf("log %s of %d records, broken %q; want %s", g.log.Name(), g.log.Size(), g.log.Broken, want)
			}
		})
	}
}

// TestAdded: records that were added while the gate was stopped are never signed, unless they may be those of a kill.
func TestAdded(t *testing.T) {
	const month = 30 * 24 * time.Hour
	for _, test := range []struct {
		name    string
		end     bool // the gate ended, else it was killed
		again   bool // the gate has started again, without a request, and was killed
		added   int
		span    time.Duration // from the last checkpoint to the last of them
		resumed bool
	}{
		{name: "killed, over a month", added: 1000, span: month},
		{name: "killed, later", added: 1, span: maxResumed + 10*time.Millisecond},
		{name: "killed, before", added: 1, span: -month},
		{name: "killed, just before", added: 1, span: -maxTail - 10*time.Millisecond},
		{name: "killed, while it waited", added: 1, span: -maxTail + 10*time.Millisecond, resumed: true},
		{name: "killed, in time", added: 1, span: maxResumed - 10*time.Millisecond, resumed: true}, // SECURITY.md says so
		{name: "ended, over a month", end: true, added: 1000, span: month},
		{name: "ended, in time", end: true, added: 1, span: time.Second},
		{name: "ended, started and killed", end: true, again: true, added: 1, span: time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := start(t, t.TempDir())
				g.entries(3)
				g.checkpoint(test.end)
				if test.again {
					g.open()
				}
				signed := time.Now()
				for i := range test.added {
					g.write(g.entry(int64(3+i), signed.Add(test.span*time.Duration(i+1)/time.Duration(test.added))))
				}
				time.Sleep(2 * month) // fake clock
				g.open()
				want := "that the gate can't have written"
				if test.end {
					want = "the log has ended before it"
				}
				switch {
				case test.resumed && (g.log.Name() != testLog || g.log.Size() != int64(3+test.added)):
					t.Errorf("log %s, %d records, broken %q", g.log.Name(), g.log.Size(), g.log.Broken)
				case !test.resumed && (g.log.Name() != testLog+"/2" || g.log.Size() != 0 || !strings.Contains(g.log.Broken, want)):
					t.Errorf("log %s of %d records, broken %q", g.log.Name(), g.log.Size(), g.log.Broken)
				}
			})
		})
	}
}

// TestResumedLate: --verify judges a line that covers records of a kill as a start does.
func TestResumedLate(t *testing.T) {
	for span, faults := range map[time.Duration]int{time.Second: 0, time.Minute: 1, -time.Minute: 1} {
		synctest.Test(t, func(t *testing.T) {
			g := start(t, t.TempDir())
			g.entries(3)
			g.checkpoint(false)
			text := g.entry(3, time.Now().Add(span))
			g.write(text)
			g.log.Add(text)
			g.log.resumed = 1
			g.checkpoint(true)
			v := verified(t, VerifyOptions{}, read(t, g.o.Path))
			if v.Faulty != faults || faults > 0 && !strings.Contains(v.Faults[0], "a start after a kill has covered records 3 to 3") {
				t.Errorf("%v: faults %q, notes %q", span, v.Faults, v.Notes)
			}
		})
	}
}

// TestOwnLog: without a folder each start has a log of its own, which the key of the name verifies.
func TestOwnLog(t *testing.T) {
	names := map[string]bool{}
	for range 2 {
		l, err := OpenLog(Options{Name: testLog, Gate: "gate-a", Key: newKey(1), Place: record.ReadPlace, Path: "-"})
		if err != nil {
			t.Fatal(err)
		}
		names[l.Name()] = true
		line, err := l.Checkpoint(0, false)
		if err != nil {
			t.Fatal(err)
		}
		var c Line
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		if log, _ := c.Stated(); !strings.HasPrefix(log, testLog+"/") {
			t.Errorf("log %s", log)
		}
		if v := verified(t, VerifyOptions{}, string(line)); v.Faulty > 0 || v.Name != l.Name() {
			t.Errorf("log %s: faults %q", v.Name, v.Faults)
		}
	}
	if len(names) != 2 {
		t.Errorf("names %v", names)
	}
}
