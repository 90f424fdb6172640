package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// A Head states how far a chain has come, and how far it may go before its gate keeps the
// next head. It is kept apart from the records, so that records that are removed from the end
// of a log, or added to it, are found.
type Head struct {
	Chain  string    `json:"chain"`
	Number int64     `json:"number"` // of the last record; 0: the first is about to be written
	Hash   string    `json:"hash"`
	Time   time.Time `json:"time"` // when the last record was written
	File   string    `json:"file"`
	Stream bool      `json:"stream,omitempty"` // standard output or a pipe: where its records are is not known
	Ended  bool      `json:"ended,omitempty"`  // nothing may follow

	// Records up to Limit may follow until the time Until, none afterwards.
	Limit int64     `json:"limit,omitempty"`
	Until time.Time `json:"until,omitzero"`
}

const (
	// reserveTime is how long a head permits more records.
	reserveTime = time.Second
	// minReserved is how many records a head permits at least.
	minReserved = 16
	// clockSkew is how much earlier than its head a record may be dated: it may have waited
	// for a slow disk.
	clockSkew = time.Minute
)

// last returns the highest number that a record of the chain may have.
func (h *Head) last() int64 {
	if h.Ended {
		return h.Number
	}
	return max(h.Limit, h.Number)
}

// earliest returns when a record after the head may have been written.
func (h *Head) earliest() time.Time { return h.Time.Add(-clockSkew) }

// A headFile keeps the head of one chain in a folder.
type headFile struct {
	dir  string // empty: none is kept
	log  *slog.Logger
	kept Head // the last that was written
	// file is that of the last head. It is locked while the gate runs, so that other gates
	// know that it does; nil if files can't be locked.
	file     *os.File
	failed   time.Time // when the last write failed; zero: it did not
	reported time.Time // when that was last logged
}

// write replaces the head. A failure is logged once a minute.
func (f *headFile) write(h Head) {
	locked, err := writeHead(f.dir, h)
	if err == nil {
		f.unlock()
		f.kept, f.file, f.failed = h, locked, time.Time{}
		return
	}
	f.failed = time.Now()
	if time.Since(f.reported) >= time.Minute {
		f.reported = f.failed
		f.log.Error("the position of the audit log's chain can't be kept; check the space and permissions of its folder", "folder", f.dir, "error", err)
	}
}

// unlock tells other gates that this one has ended.
func (f *headFile) unlock() {
	f.file.Close() // does nothing if it is nil
}

const (
	headSuffix = ".json"
	newSuffix  = ".new" // of a head that is being written
)

// writeHead replaces the head of a chain in a folder. It returns the file if that is locked.
func writeHead(dir string, h Head) (locked *os.File, err error) {
	data, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(dir, h.Chain+".*"+newSuffix) // its mode is 0600
	if err != nil {
		return nil, err
	}
	_, err = f.Write(append(data, '\n'))
	err = errors.Join(err, f.Sync())
	if got, _ := tryLock(f); got {
		locked = f
	} else { // some systems don't rename open files
		err = errors.Join(err, f.Close())
	}
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(dir, h.Chain+headSuffix))
	}
	if err != nil {
		locked.Close() // does nothing if it is nil
		os.Remove(f.Name())
		return nil, err
	}
	// After a power cut the head must not be older than the records.
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync() // not every system can
		d.Close()
	}
	return locked, nil
}

// gateOf reports whether the gate of a head has ended, and whether it runs. Neither is known
// if files can't be locked.
func gateOf(path string) (ended, runs bool) {
	f, err := os.Open(path)
	if err != nil {
		return false, false
	}
	defer f.Close()
	if ended, runs = tryLock(f); ended && !isNamed(f, path) {
		return false, true // its gate has just replaced it
	}
	return ended, runs
}

// isNamed reports whether an open file has this path.
func isNamed(f *os.File, path string) bool {
	open, err := f.Stat()
	named, errNamed := os.Stat(path)
	return err == nil && errNamed == nil && os.SameFile(open, named)
}

// Heads returns the heads in a folder, by their chains.
func Heads(dir string) (map[string]Head, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	all := map[string]Head{}
	var errs []error
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), headSuffix)
		if !ok {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		var h Head
		if err == nil {
			err = json.Unmarshal(data, &h)
		}
		if err == nil && h.Chain != name {
			err = errors.New("it is the head of another chain")
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", filepath.Join(dir, e.Name()), err))
			continue
		}
		all[name] = h
	}
	return all, errors.Join(errs...)
}
