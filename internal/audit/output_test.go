package audit

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/proxy"
)

// TestTwoWriters: while one gate writes another waits, and then sees the new size.
func TestTwoWriters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	synctest.Test(t, func(t *testing.T) {
		a, b := newOutput(path), newOutput(path)
		defer a.close()
		defer b.close()
		if err := a.prepare(10); err != nil {
			t.Fatal(err)
		}
		if !a.locked {
			t.Skip("no locks here")
		}
		done := make(chan error, 1)
		go func() {
			err := b.prepare(10)
			if err == nil && b.size != 2 {
				err = fmt.Errorf("%d bytes", b.size)
			}
			b.unlock()
			done <- err
		}()
		time.Sleep(lockWait / 2) // fake clock
		select {
		case err := <-done:
			t.Fatalf("the other did not wait: %v", err)
		default:
		}
		if _, err := a.write([]byte("a\n")); err != nil {
			t.Fatal(err)
		}
		a.unlock()
		if err := <-done; err != nil {
			t.Error(err)
		}
		// A lock that is not released is waited for once, and for a bounded time.
		if err := a.prepare(10); err != nil {
			t.Fatal(err)
		}
		for _, wait := range []time.Duration{lockWait + lockPause, 0} {
			start := time.Now()
			if err := b.prepare(10); err != nil || time.Since(start) != wait {
				t.Errorf("%v, after %v, want %v", err, time.Since(start), wait)
			}
		}
	})
}

func newOutput(path string) *output {
	return &output{path: path, max: 100, log: slog.New(slog.DiscardHandler)}
}

// TestRemoveLast removes its own half of an entry, and nothing of another gate.
func TestRemoveLast(t *testing.T) {
	for behind, want := range map[string]string{"": "a\n", "b\n": "a\nhalb\n"} {
		path := filepath.Join(t.TempDir(), "audit.jsonl")
		f := newOutput(path)
		if err := f.prepare(10); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("a\nhal"+behind), 0o600); err != nil {
			t.Fatal(err)
		}
		f.size = 5
		f.removeLast(3)
		f.close()
		if got, err := os.ReadFile(path); err != nil || string(got) != want || f.torn != (behind != "") {
			t.Errorf("%q, torn %t, %v; want %q", got, f.torn, err, want)
		}
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
				l.Write(&proxy.Record{ID: "first", Method: "GET"})
				synctest.Wait()
				if err := replace(dir, file); err != nil {
					t.Fatal(err)
				}
				if name == "replaced" {
					if err := os.Rename(file+".new", file); err != nil {
						t.Fatal(err)
					}
				}
				l.Write(&proxy.Record{ID: "second", Method: "GET"})
				if err := l.Close(); err != nil {
					t.Fatal(err)
				}
			})
			data, err := os.ReadFile(file)
			if err != nil || !bytes.Contains(data, []byte(`"id":"second"`)) || !bytes.Contains(data, []byte(`"edge":["`)) || bytes.Contains(data, []byte("first")) {
				t.Errorf("%v: %s", err, data)
			}
		})
	}
}

// TestRepair: half an entry at the end of a file is removed, nothing else is.
func TestRepair(t *testing.T) {
	const whole = "{\"time\":\"2026-01-01T00:00:00Z\"}\n"
	for name, test := range map[string]struct{ tail, kept string }{
		"nothing":        {"", ""},
		"half a record":  {`{"time":"2026-01-`, ""},
		"a byte":         {"{", ""},
		"zeros":          {`{"ti` + strings.Repeat("\x00", 4000), ""},
		"something else": {"root:x:0:0", "root:x:0:0\n"},
		"a record, and zeros in place of its end": {whole[:len(whole)-1] + "\x00\x00", whole},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "audit.jsonl")
			if err := os.WriteFile(file, []byte(whole+test.tail), 0o600); err != nil {
				t.Fatal(err)
			}
			var logged bytes.Buffer
			l := open(t, Options{Config: Config{File: file, Keep: 1}}, nil, &logged)
			l.Write(&proxy.Record{ID: "next", Method: "GET"})
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			before, _, ok := strings.Cut(string(data), `{"checkpoint":"`)
			if !ok || before != whole+test.kept {
				t.Errorf("got %q", data)
			}
			if cut := test.tail != "" && test.kept == ""; cut != strings.Contains(logged.String(), "ended in the middle of a record") {
				t.Errorf("logged %q", logged.String())
			}
		})
	}
}

// TestHarmless: text from the network can't control a terminal that shows the log.
func TestHarmless(t *testing.T) {
	var out bytes.Buffer
	l := open(t, Options{Config: Config{File: "-"}}, &out, nil)
	l.Write(&proxy.Record{Start: time.Now(), Method: "GET", URL: "/\x1b[2J\u009b\u202e\u007f\U000e0001é\xff\u2028"})
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
