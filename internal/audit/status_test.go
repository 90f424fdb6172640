package audit

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/internal/evidence"
	"robotsgate/internal/record"
)

// TestStatus: the state of the log has the last checkpoint.
func TestStatus(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		l := open(t, Options{Config: Config{File: filepath.Join(dir, "audit.jsonl")}}, nil, nil)
		defer l.Close()
		if s := l.Status(); s.Name != "log.example" || !strings.HasPrefix(s.Key, "log.example+") || s.Size != 0 || !s.Checkpoint.IsZero() {
			t.Errorf("at the start: %+v", s)
		}
		begun := time.Now()
		for range 3 {
			l.Write(&record.Record{Method: "GET", Time: time.Now()})
		}
		time.Sleep(2 * checkpointInterval) // fake clock
		if s := l.Status(); s.Size != 3 || s.Checkpoint.IsZero() || s.Checkpoint.Sub(begun) > checkpointInterval {
			t.Errorf("after 3 records: %+v", s)
		}
	})
}

// TestNoCheckpoint: while data_dir can't be written, the state of the log says why there is no checkpoint. The log says
// when there are checkpoints again.
func TestNoCheckpoint(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	away := dir + "-away"
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "audit.jsonl")
	synctest.Test(t, func(t *testing.T) {
		logged := new(bytes.Buffer)
		l := open(t, Options{Config: Config{File: file}, Evidence: evidence.Options{Dir: dir}}, nil, logged)
		defer l.Close()
		write := func() Status {
			l.Write(&record.Record{Method: "GET", Time: time.Now()})
			time.Sleep(5 * checkpointInterval) // fake clock
			synctest.Wait()
			return l.Status()
		}
		if s := write(); s.Error != "" || s.Size != 1 {
			t.Errorf("at first: %+v", s)
		}
		if err := os.Rename(dir, away); err != nil {
			t.Fatal(err)
		}
		if s := write(); s.Error == "" || s.Size != 1 || strings.Contains(logged.String(), "again") {
			t.Errorf("without the folder: %+v, %s", s, logged)
		}
		if err := os.Rename(away, dir); err != nil {
			t.Fatal(err)
		}
		if s := write(); s.Error != "" || s.Size != 3 || strings.Count(logged.String(), "the audit log gets checkpoints again") != 1 {
			t.Errorf("with the folder: %+v, %s", s, logged)
		}
	})
}
