package audit

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/internal/evidence"
	"robotsgate/proxy"
)

// A followed log is read by Follow in the background.
type followed struct {
	t    *testing.T
	path string
	ids  []string // of the entries since the last call of wants; "-" for a line without one
	at   string   // of the last line
	end  func() error
}

// follow begins to follow a log in a synctest bubble.
func follow(t *testing.T, path string) *followed {
	f := &followed{t: t, path: path}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- Follow(ctx, path, func(l *Line) {
			f.at = filepath.Base(l.At())
			if l.Entry == nil {
				f.ids = append(f.ids, "-")
				return
			}
			f.ids = append(f.ids, l.Entry.ID)
		}, func() error { return nil })
	}()
	f.end = func() error {
		cancel()
		return <-ended
	}
	return f
}

// wants compares the entries that have been read since its last call.
func (f *followed) wants(what string, ids ...string) {
	f.t.Helper()
	time.Sleep(2 * followInterval) // fake clock
	synctest.Wait()
	if !slices.Equal(f.ids, ids) {
		f.t.Errorf("%s: got %q, want %q", what, f.ids, ids)
	}
	f.ids = nil
}

// lineOf returns the line of an entry.
func lineOf(id string) string {
	return fmt.Sprintf(`{"time":"2026-01-01T12:00:00Z","id":%q,"method":"GET","origin":"http://a.example"}`+"\n", id)
}

// add appends text to a file.
func (f *followed) add(text string) {
	file, err := os.OpenFile(f.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = file.WriteString(text)
		file.Close()
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

// rotate renames the log, as a gate does that began it some seconds after midnight.
func (f *followed) rotate(second int) {
	at := time.Date(2026, 1, 1, 0, 0, second, 0, time.UTC)
	name := strings.TrimSuffix(f.path, ".jsonl") + "-" + at.Format(rotatedTime) + ".jsonl"
	if err := os.Rename(f.path, name); err != nil {
		f.t.Fatal(err)
	}
}

func TestFollow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	synctest.Test(t, func(t *testing.T) {
		f := &followed{t: t, path: path}
		f.add(lineOf("1") + "\n" + lineOf("2"))
		f = follow(t, path)
		f.wants("what is there", "1", "2")
		f.wants("nothing new")
		f.add(lineOf("3"))
		f.wants("a line", "3")
		f.add(lineOf("4")[:20])
		f.wants("half a line")
		f.add(lineOf("4")[20:] + lineOf("5")[:10])
		f.wants("its rest, and half of another", "4")
		f.add(lineOf("5")[10:] + "{}\n")
		f.wants("the rest of that, and no record", "5", "-")
		if f.at != "audit.jsonl:7" {
			t.Errorf("got the place %s", f.at)
		}

		f.add(strings.Repeat("x", 2*evidence.MaxLine))
		f.wants("too long a line without its end", "-")
		f.add("\n" + lineOf("6"))
		f.wants("the end of a long line", "6")

		f.add(lineOf("7"))
		f.rotate(1)
		f.add(lineOf("8"))
		f.wants("rotated", "7", "8")
		f.rotate(2)
		f.wants("no file")
		f.add(lineOf("9"))
		f.rotate(3)
		f.add(lineOf("10"))
		f.rotate(4)
		f.add(lineOf("11") + lineOf("12"))
		f.wants("rotated three times", "9", "10", "11", "12")

		if err := os.Truncate(path, 0); err != nil {
			t.Fatal(err)
		}
		f.add(lineOf("the-first"))
		f.wants("truncated", "the-first")
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		f.add(lineOf("o"))
		f.wants("removed", "o")
		if err := f.end(); err != nil {
			t.Errorf("ended with %v", err)
		}
	})
}

// TestFollowProbe: a probe of the gate, which it removes again, does not make Follow begin again.
func TestFollowProbe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	synctest.Test(t, func(t *testing.T) {
		f := &followed{t: t, path: path}
		f.add(lineOf("1") + "\n")
		f = follow(t, path)
		f.wants("what is there", "1")
		for range 2 {
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			f.add(string(probeText))
			f.wants("a probe")
			f.add(lineOf("lost")[:30])
			f.wants("half a record")
			if err := os.Truncate(path, info.Size()); err != nil {
				t.Fatal(err)
			}
			f.wants("without the probe")
		}
		f.add(lineOf("2"))
		f.wants("the next record", "2")
		f.end()
	})
}

// TestFollowGate: no entry of a gate that rotates its log often is left out or read twice.
func TestFollowGate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	synctest.Test(t, func(t *testing.T) {
		l := open(t, Options{Config: Config{File: path, Keep: 100}}, nil, nil)
		l.writer.out.max = 1000
		f := follow(t, path)
		var want []string
		for i := range 50 {
			want = append(want, fmt.Sprint(i))
			l.Write(&proxy.Record{ID: want[i], Start: time.Now(), Method: "GET", URL: "http://a.example/", Origin: "http://a.example"})
			time.Sleep(time.Duration(i%7) * 20 * time.Millisecond) // fake clock
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		f.wants("the records", want...)
		if n := len(RotatedFiles(path)); n < 5 {
			t.Errorf("%d rotated files, want several", n)
		}
		f.end()
	})
}

// TestFollowRotatedMeanwhile: a file that is rotated after it has been opened is not read as a rotated
// file, too.
func TestFollowRotatedMeanwhile(t *testing.T) {
	f := &followed{t: t, path: filepath.Join(t.TempDir(), "audit.jsonl")}
	var ids []string
	r := &follower{path: f.path, buffer: bufio.NewReaderSize(nil, evidence.MaxLine), each: func(l *Line) { ids = append(ids, l.Entry.ID) }}
	var newest os.FileInfo
	for i, id := range []string{"1", "2"} {
		f.add(lineOf(id))
		info, err := os.Stat(f.path)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			r.file = info
		}
		newest = info
		f.rotate(i)
	}
	if err := r.finish(t.Context(), newest); err != nil || !slices.Equal(ids, []string{"1"}) {
		t.Errorf("got %q, %v", ids, err)
	}
}

func TestFollowErrors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	if err := Follow(t.Context(), path, func(*Line) {}, func() error { return nil }); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	(&followed{t: t, path: path}).add(lineOf("1"))
	full := errors.New("disk full")
	if err := Follow(t.Context(), path, func(*Line) {}, func() error { return full }); !errors.Is(err, full) {
		t.Errorf("pause has failed: %v", err)
	}
}
