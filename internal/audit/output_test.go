package audit

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/internal/evidence"
	"robotsgate/internal/record"
)

// TestTwoGates: a file is the log of one gate. Another that shall write it, or one that does not own its data_dir, writes a
// file of its own beside it, also at its next start.
func TestTwoGates(t *testing.T) {
	dir := t.TempDir()
	file, own := filepath.Join(dir, "audit.jsonl"), filepath.Join(dir, "audit.b.jsonl")
	first := open(t, Options{Config: Config{File: file}}, nil, nil)
	if isLocked(first.writer.out.f) {
		t.Skip("no locks here")
	}
	data := t.TempDir()
	for i := range 2 {
		if i == 1 {
			first.Close() // its file is free for the second start
		}
		var logged bytes.Buffer
		l := open(t, Options{Config: Config{File: file}, Evidence: evidence.Options{Gate: "b", Dir: data}}, nil, &logged)
		l.Write(&record.Record{Method: "GET", Time: time.Now()})
		l.Close()
		if !strings.Contains(logged.String(), "another gate writes log.audit") || strings.Count(logged.String(), "\n") != 1 {
			t.Errorf("logged %s", &logged)
		}
	}
	if text, err := os.ReadFile(own); err != nil || len(entriesIn(text)) != 2 || !bytes.Contains(text, []byte(`"index":1}`)) {
		t.Errorf("%v: %s", err, text)
	}
	if text, err := os.ReadFile(file); err != nil || len(text) > 0 {
		t.Errorf("%v: %s", err, text)
	}
	l, err := Open(Options{Config: Config{File: file}, Evidence: evidence.Options{Gate: "c", Name: "log.example", Key: testKey}}, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	l.Write(&record.Record{Method: "GET", Time: time.Now()})
	l.Close()
	if text, err := os.ReadFile(filepath.Join(dir, "audit.c.jsonl")); err != nil || len(entriesIn(text)) != 1 || !bytes.HasPrefix(text, []byte(`{"checkpoint":"log.example/`)) {
		t.Errorf("%v: %s", err, text)
	}
}

// TestOtherFile: what the log does not go on in is kept under another name.
func TestOtherFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "audit.jsonl")
	if err := os.WriteFile(file, []byte("root:x:0:0"), 0o600); err != nil {
		t.Fatal(err)
	}
	l := open(t, Options{Config: Config{File: file}}, nil, nil)
	l.Write(&record.Record{Method: "GET", Time: time.Now()})
	l.Close()
	rotated := rotatedFiles(file)
	if len(rotated) != 1 {
		t.Fatalf("rotated files: %v", rotated)
	}
	before, err := os.ReadFile(rotated[0])
	now, _ := os.ReadFile(file)
	if err != nil || string(before) != "root:x:0:0" || len(entriesIn(now)) != 1 {
		t.Errorf("%v, %q, %q", err, before, now)
	}
}

// TestFileReplaced: a file that is removed or replaced is begun anew, and so is its folder.
func TestFileReplaced(t *testing.T) {
	for name, replace := range map[string]func(dir, file string) error{
		"removed":        func(_, file string) error { return os.Remove(file) },
		"renamed":        func(_, file string) error { return os.Rename(file, file+".1") },
		"folder removed": func(dir, _ string) error { return os.RemoveAll(dir) },
		"replaced":       func(_, file string) error { return os.WriteFile(file+".new", nil, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "logs")
			file := filepath.Join(dir, "audit.jsonl")
			synctest.Test(t, func(t *testing.T) {
				l := open(t, Options{Config: Config{File: file, Keep: 1}}, nil, nil)
				l.Write(&record.Record{ID: "first", Method: "GET"})
				synctest.Wait()
				if err := replace(dir, file); err != nil {
					t.Fatal(err)
				}
				if name == "replaced" {
					if err := os.Rename(file+".new", file); err != nil {
						t.Fatal(err)
					}
				}
				l.Write(&record.Record{ID: "second", Method: "GET"})
				if err := l.Close(); err != nil {
					t.Fatal(err)
				}
			})
			data, err := os.ReadFile(file)
			if err != nil || !bytes.Contains(data, []byte(`"id":"second"`)) || !bytes.HasPrefix(data, []byte(`{"checkpoint":"log.example\n1\n`)) || bytes.Contains(data, []byte("first")) {
				t.Errorf("%v: %s", err, data)
			}
		})
	}
}

// TestHarmless: text from the network can't control a terminal that shows the log.
func TestHarmless(t *testing.T) {
	var out bytes.Buffer
	l := open(t, Options{Config: Config{File: "-"}}, &out, nil)
	l.Write(&record.Record{Time: time.Now(), Method: "GET", URL: "/\x1b[2J\u009b\u202e\u007f\U000e0001é\xff\u2028"})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), `"url":"/\u001b[2J\u009b\u202e\u007f\udb40\udc01é\ufffd\u2028"`) {
		t.Errorf("got %s", out.String())
	}
	r, err := parse(bytes.TrimSpace(entriesIn(out.Bytes())[0]))
	if err != nil || r.URL != "/\x1b[2J\u009b\u202e\u007f\U000e0001é\ufffd\u2028" {
		t.Errorf("read again: %v, %q", err, r.URL)
	}
}
