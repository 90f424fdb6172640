package audit

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/internal/evidence"
	"robotsgate/internal/record"
)

// A repairableDisk accepts empty writes only, until it is repaired.
type repairableDisk struct {
	bytes.Buffer
	repaired atomic.Bool
}

func (d *repairableDisk) Write(b []byte) (int, error) {
	if !d.repaired.Load() && len(b) > 0 {
		return 0, errors.New("no space left on device")
	}
	return d.Buffer.Write(b)
}

// TestRecovery: a log that could not be written is probed until it can be.
func TestRecovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logged bytes.Buffer
		disk := &repairableDisk{}
		l := open(t, Options{Config: Config{File: "-"}}, disk, &logged)
		l.Write(&record.Record{ID: "lost", Method: "GET", Time: time.Now()})
		time.Sleep(time.Hour) // fake clock
		synctest.Wait()
		if l.Err() == nil {
			t.Fatal("no error while nothing can be written")
		}
		if got := strings.Count(logged.String(), "no space left on device"); got != 1 {
			t.Errorf("%d reports of one failure: %s", got, logged.String())
		}
		disk.repaired.Store(true)
		time.Sleep(2 * time.Second) // fake clock: as SECURITY.md says
		synctest.Wait()
		if err := l.Err(); err != nil {
			t.Errorf("%v, though the disk has been repaired for two seconds", err)
		}
		if !strings.Contains(logged.String(), `msg="the audit log is written again" lost=1`) {
			t.Errorf("logged: %s", logged.String())
		}
		time.Sleep(time.Hour) // fake clock
		synctest.Wait()
		if got := disk.String(); got != string(probeText) {
			t.Errorf("%d bytes are written, want one probe", len(got))
		}
		l.Write(&record.Record{ID: "next", Method: "GET", Time: time.Now()})
		l.Close()
		ids := idsIn(t, "-", &disk.Buffer)
		if strings.Join(ids, " ") != "next" || !strings.Contains(logged.String(), "lost=1") {
			t.Errorf("the log has %v; logged: %s", ids, logged.String())
		}
	})
}

// TestProbe: the first probe is over before Open returns, which waits for a bounded time.
func TestProbe(t *testing.T) {
	start := func(out io.Writer) (l *Log, logged *bytes.Buffer) {
		logged = &bytes.Buffer{}
		return open(t, Options{Config: Config{File: "-", Required: true}}, out, logged), logged
	}
	const again = "the audit log is written again"
	synctest.Test(t, func(t *testing.T) {
		l, logged := start(&bytes.Buffer{})
		if err := l.Err(); err != nil || logged.Len() > 0 {
			t.Errorf("a disk in order: %v, logged %s", err, logged)
		}
		l.Close()

		full := &repairableDisk{}
		l, logged = start(full)
		if err := l.Err(); err == nil || !strings.Contains(err.Error(), "no space left on device") || !strings.Contains(logged.String(), "no space left on device") {
			t.Errorf("a full disk: %v, logged %s", err, logged)
		}
		full.repaired.Store(true)
		time.Sleep(probeInterval) // fake clock
		synctest.Wait()
		if err := l.Err(); err != nil || !strings.Contains(logged.String(), again) {
			t.Errorf("a full disk that is repaired: %v, logged %s", err, logged)
		}
		l.Close()

		pipe := &pipe{reader: make(chan struct{})}
		before := time.Now()
		l, logged = start(pipe)
		if err := l.Err(); err != errTooSlow || time.Since(before) != maxWrite {
			t.Errorf("a pipe that is not read: %v, after %v", err, time.Since(before))
		}
		close(pipe.reader)
		synctest.Wait()
		if err := l.Err(); err != nil || !strings.Contains(logged.String(), again) {
			t.Errorf("a pipe that is read again: %v, logged %s", err, logged)
		}
		l.Close()
	})
}

// TestProbeOfFile: a probe leaves nothing in a file. If the gate ended during a probe, no
// entry is damaged.
func TestProbeOfFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "audit.jsonl")
	o := Options{Config: Config{File: path, Keep: 1}, Evidence: evidence.Options{Dir: dir}}
	l := open(t, o, nil, nil)
	l.Write(&record.Record{ID: "first", Method: "GET", Time: time.Now()})
	l.Close()
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	required := o
	required.Required = true
	l = open(t, required, nil, nil)
	if err := l.Err(); err != nil {
		t.Errorf("the probe fails: %v", err)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the file has %d bytes after the probe, want %d; %v", len(after), len(before), err)
	}
	l.Close()
	for _, left := range [][]byte{probeText[:100], probeText} {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(left); err != nil {
			t.Fatal(err)
		}
		f.Close()
		l = open(t, o, nil, nil)
		l.Write(&record.Record{ID: "more", Method: "GET", Time: time.Now()})
		l.Close()
	}
	if ids := idsIn(t, path, nil); strings.Join(ids, " ") != "first more more" {
		t.Errorf("the file has %v", ids)
	}
}

// idsIn returns the ids of a log's entries. Each line must be an entry or empty.
func idsIn(t *testing.T, file string, stdin *bytes.Buffer) (ids []string) {
	t.Helper()
	err := readTexts([]string{file}, stdin, func(file string, text evidence.Text) {
		switch l := parseLine(file, text); {
		case l == nil: // a checkpoint
		case l.Err != nil:
			t.Errorf("%s: %v", l.At(), l.Err)
		default:
			ids = append(ids, l.Record.ID)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return ids
}
