// Package budgets keeps what budgets have counted in a file, so that a restart permits no more requests.
package budgets

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"robotsgate/internal/loglimit"
	"robotsgate/internal/wholefile"
	"robotsgate/policy/pace"
)

// FileName is the name of the file in data_dir: lines of JSON, each some requests that count, the oldest first. It names
// no crawler and no host, but hashes of them.
const FileName = "budgets.jsonl"

const (
	interval   = time.Second // between two writes; a kill loses what was counted since
	slack      = 1 << 20     // bytes that the file may grow by beyond twice its size, until it is written anew
	maxLine    = 256         // bytes
	maxEntries = 2_000_000   // that are read
)

// A Pacer counts; a [*pace.Pacer] is one.
type Pacer interface {
	Kept(all bool) []pace.Kept
	Restore([]pace.Kept)
}

// A line is one line of the file.
type line struct {
	Key    string    `json:"key"`    // the hash, in hexadecimal
	Window int64     `json:"window"` // seconds
	At     time.Time `json:"at"`
	N      int       `json:"n"`
}

// A File keeps what one pacer counts.
type File struct {
	path  string
	pacer Pacer
	log   *slog.Logger

	size, least int64 // of the file, and when it was written anew
	failed      bool  // the last write has: what it had is lost
	failures    loglimit.Minute

	stop    chan struct{}
	running sync.WaitGroup
}

// Open restores what the file in a folder has, and goes on keeping what the pacer counts, until Close. What cannot be
// read is left out, and logged.
func Open(dir string, p Pacer, log *slog.Logger) *File {
	f := &File{path: filepath.Join(dir, FileName), pacer: p, log: log, failed: true, stop: make(chan struct{})}
	f.restore()
	f.keep()
	f.running.Go(func() {
		for tick := time.NewTicker(interval); ; f.keep() {
			select {
			case <-tick.C:
			case <-f.stop:
				tick.Stop()
				return
			}
		}
	})
	return f
}

// Close keeps what was counted last.
func (f *File) Close() {
	close(f.stop)
	f.running.Wait()
	f.keep()
}

// restore reads the file.
func (f *File) restore() {
	file, err := os.Open(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var starts []pace.Kept
	damaged := 0
	if err == nil {
		defer file.Close()
		lines := bufio.NewScanner(file)
		lines.Buffer(nil, maxLine)
		for len(starts) < maxEntries && lines.Scan() {
			var l line
			key, err := []byte(nil), json.Unmarshal(lines.Bytes(), &l)
			if err == nil {
				key, err = hex.DecodeString(l.Key)
			}
			if err != nil || len(key) != len(pace.Kept{}.Key) {
				damaged++ // such as the last line after a power cut
				continue
			}
			starts = append(starts, pace.Kept{Key: [16]byte(key), Window: time.Duration(l.Window) * time.Second, At: l.At, N: l.N})
		}
		err = lines.Err()
	}
	if err != nil || damaged > 0 {
		f.log.Warn("what budgets have counted can't be read whole: requests before this start may not count", "file", f.path, "damaged_lines", damaged, "error", err)
	}
	f.pacer.Restore(starts)
}

// keep writes what was counted since the last time; the whole if the file is new, has grown too long, or lacks something.
func (f *File) keep() {
	anew := f.failed || f.size > 2*f.least+slack
	starts := f.pacer.Kept(anew)
	if len(starts) == 0 && !anew {
		return
	}
	write := func(to *os.File) error {
		w := bufio.NewWriter(to)
		lines := json.NewEncoder(w)
		for _, s := range starts {
			if err := lines.Encode(line{hex.EncodeToString(s.Key[:]), int64(s.Window / time.Second), s.At.UTC(), s.N}); err != nil {
				return err
			}
		}
		err := w.Flush()
		f.size, _ = to.Seek(0, io.SeekCurrent)
		return err
	}
	var err error
	if anew {
		err = wholefile.WriteFunc(f.path, write)
		f.least = f.size
	} else {
		err = f.add(write)
	}
	if f.failed = err != nil; f.failed && f.failures.Add() > 0 {
		f.log.Error("what budgets have counted can't be kept, so that a restart permits more requests; check the space and permissions of data_dir", "error", err)
	}
}

// add writes to the end of the file.
func (f *File) add(write func(*os.File) error) error {
	file, err := os.OpenFile(f.path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	return errors.Join(write(file), file.Close())
}
