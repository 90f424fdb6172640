package audit

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/proxy"
)

// A repairableDisk takes nothing until it is repaired.
type repairableDisk struct {
	bytes.Buffer
	repaired atomic.Bool
}

func (d *repairableDisk) Write(b []byte) (int, error) {
	if !d.repaired.Load() {
		return 0, errors.New("no space left on device")
	}
	return d.Buffer.Write(b)
}

// A log that could not be written finds out by itself that it can be again.
func TestRecovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said bytes.Buffer
		disk := &repairableDisk{}
		l := New(Options{File: "-"}, disk, slog.New(slog.NewTextHandler(&said, nil)))
		l.Write(&proxy.Record{ID: "lost", Method: "GET", Start: time.Now()})
		time.Sleep(time.Hour)
		synctest.Wait()
		if l.Err() == nil {
			t.Fatal("no error while nothing can be written")
		}
		if got := strings.Count(said.String(), "no space left on device"); got != 1 {
			t.Errorf("%d reports of one failure: %s", got, said.String())
		}
		disk.repaired.Store(true)
		time.Sleep(settleAfter)
		synctest.Wait()
		if err := l.Err(); err != nil {
			t.Errorf("%v, though the disk has been repaired for %v", err, settleAfter)
		}
		if !strings.Contains(said.String(), `msg="the audit log is written again" lost=1`) {
			t.Errorf("said: %s", said.String())
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := disk.String(); got != string(trial) {
			t.Errorf("%d bytes are written, want one trial", len(got))
		}
		l.Write(&proxy.Record{ID: "next", Method: "GET", Start: time.Now()})
		l.Close()
		ids := idsIn(t, "-", &disk.Buffer)
		if strings.Join(ids, " ") != "next" || !strings.Contains(said.String(), "lost=1") {
			t.Errorf("the log has %v; said: %s", ids, said.String())
		}
	})
}

// TestTry: whether records can be written is known before the first, and a disk that takes
// nothing holds up the start for a while only.
func TestTry(t *testing.T) {
	start := func(out io.Writer) (l *Log, said *bytes.Buffer) {
		said = &bytes.Buffer{}
		l = New(Options{File: "-"}, out, slog.New(slog.NewTextHandler(said, nil)))
		l.Try()
		return l, said
	}
	const again = "the audit log is written again"
	synctest.Test(t, func(t *testing.T) {
		l, said := start(&bytes.Buffer{})
		if err := l.Err(); err != nil || said.Len() > 0 {
			t.Errorf("a disk in order: %v, said %s", err, said)
		}
		l.Close()

		full := &repairableDisk{}
		l, said = start(full)
		if err := l.Err(); err == nil || !strings.Contains(err.Error(), "no space left on device") || !strings.Contains(said.String(), "no space left on device") {
			t.Errorf("a full disk: %v, said %s", err, said)
		}
		full.repaired.Store(true)
		time.Sleep(settleAfter)
		synctest.Wait()
		if err := l.Err(); err != nil || !strings.Contains(said.String(), again) {
			t.Errorf("a full disk that is repaired: %v, said %s", err, said)
		}
		l.Close()

		reader, pipe := io.Pipe() // takes nothing until it is read
		before := time.Now()
		l, said = start(pipe)
		if err := l.Err(); err != errTooSlow || time.Since(before) != hangs {
			t.Errorf("a pipe that is not read: %v, after %v", err, time.Since(before))
		}
		go io.Copy(io.Discard, reader)
		synctest.Wait()
		if err := l.Err(); err != nil || !strings.Contains(said.String(), again) {
			t.Errorf("a pipe that is read again: %v, said %s", err, said)
		}
		l.Close()
		pipe.Close()
	})
}

// A record that is lost for another reason than the disk does not leave the log failing.
func TestRecoveryWithoutFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Options{File: "-"}, &bytes.Buffer{}, slog.New(slog.DiscardHandler))
		l.Write(&proxy.Record{ID: "odd", Start: time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)})
		if l.Err() == nil {
			t.Error("no error though a record is lost")
		}
		time.Sleep(settleAfter)
		synctest.Wait()
		if err := l.Err(); err != nil {
			t.Error(err)
		}
		l.Close()
	})
}

// In a regular file nothing is left of a trial; where the gate ended in the middle of one, or
// it could not be taken back, no record is spoiled.
func TestTrialInFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := New(Options{File: path, Keep: 1}, nil, slog.New(slog.DiscardHandler))
	l.Write(&proxy.Record{ID: "first", Method: "GET", Start: time.Now()})
	l.Close()
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	l = New(Options{File: path, Keep: 1}, nil, slog.New(slog.DiscardHandler))
	if !l.recovered() {
		t.Error("the trial fails")
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the file has %d bytes after the trial, want %d; %v", len(after), len(before), err)
	}
	l.Close()
	for _, left := range [][]byte{trial[:100], trial} {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(left); err != nil {
			t.Fatal(err)
		}
		f.Close()
		l = New(Options{File: path, Keep: 1}, nil, slog.New(slog.DiscardHandler))
		l.Write(&proxy.Record{ID: "more", Method: "GET", Start: time.Now()})
		l.Close()
	}
	if ids := idsIn(t, path, nil); strings.Join(ids, " ") != "first more more" {
		t.Errorf("the file has %v", ids)
	}
}

// idsIn returns the ids of a log's records, every line of which must be one or empty.
func idsIn(t *testing.T, file string, stdin *bytes.Buffer) (ids []string) {
	t.Helper()
	err := Lines([]string{file}, stdin, func(l *Line) {
		if l.Err != nil {
			t.Errorf("%s: %v", l.At(), l.Err)
			return
		}
		ids = append(ids, l.Record.ID)
	})
	if err != nil {
		t.Fatal(err)
	}
	return ids
}
