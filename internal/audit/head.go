package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// A Head is how far a chain has come, and how far it may go before its gate keeps the
// next head. It is kept apart from the records, so that a log whose end is cut off, or
// has been added to, is found out.
type Head struct {
	Chain  string    `json:"chain"`
	Number int64     `json:"number"` // 0: its first record is about to be written
	Hash   string    `json:"hash"`
	Time   time.Time `json:"time"` // when the last record was written
	File   string    `json:"file"`
	Stream bool      `json:"stream,omitempty"` // it is standard output or a pipe: where its records are kept, and which, is not known
	Ended  bool      `json:"ended,omitempty"`  // nothing may follow

	// The gate writes no record beyond this number, and none after this time, before it
	// keeps the next head. Heads of earlier versions have neither.
	Limit int64     `json:"limit,omitempty"`
	Until time.Time `json:"until,omitzero"`
}

const (
	// leaseTime is for how long a head permits more records.
	leaseTime = time.Second
	// leaseRecords is how many it permits at least.
	leaseRecords = 16
	// earlier is by how much the clock of a record may be behind the one of its head: a
	// record waits for a slow disk.
	earlier = time.Minute
)

// last returns the number that no record of the chain may exceed.
func (h *Head) last() int64 {
	switch {
	case h.Ended:
		return h.Number
	case h.Limit == 0:
		return math.MaxInt64
	}
	return h.Limit
}

// earliest and latest are when records behind the head may have been written, the first of
// them at the time given.
func (h *Head) earliest() time.Time { return h.Time.Add(-earlier) }

func (h *Head) latest(first time.Time) time.Time {
	if h.Limit == 0 {
		return first.Add(2 * leaseTime) // a head of an earlier version was kept each second
	}
	return h.Until
}

// A headWriter keeps the head of one chain in a folder.
type headWriter struct {
	dir  string // "": nowhere
	kept Head   // the last that was written
	// file is the one of the last head. It is locked for as long as the gate lives, which
	// tells other gates that it does. nil where files can't be locked.
	file  *os.File
	again time.Time // when to try again, after an error
}

// write replaces the head.
func (w *headWriter) write(h Head) error {
	f, err := writeHead(w.dir, h)
	if err != nil {
		w.again = time.Now().Add(leaseTime)
		return err
	}
	w.close()
	w.kept, w.file = h, f
	return nil
}

// close lets other gates know that this one has ended.
func (w *headWriter) close() {
	if w.file != nil {
		w.file.Close()
		w.file = nil
	}
}

// writeHead puts a head in its place in a folder, whole. It returns the file if that is
// locked.
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
		if locked != nil {
			locked.Close()
		}
		os.Remove(f.Name())
		return nil, err
	}
	syncDir(dir)
	return locked, nil
}

const (
	headSuffix = ".json"
	newSuffix  = ".new" // of a head that is being written
)

// syncDir waits until the disk has the names in a folder: after a power cut the head must
// not be older than the records.
func syncDir(dir string) {
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync() // not every system can
		d.Close()
	}
}

// isDead reports whether the gate that keeps a head is known to have ended, isAlive whether
// it is known not to have. Where files can't be locked neither is.
func isDead(path string) bool { got, _ := tryHead(path); return got }

func isAlive(path string) bool { _, busy := tryHead(path); return busy }

// tryHead tries to lock a head, as tryLock does, and gives it back.
func tryHead(path string) (got, busy bool) {
	f, err := os.Open(path)
	if err != nil {
		return false, false
	}
	defer f.Close()
	if got, busy = tryLock(f); !got {
		return false, busy
	}
	open, err := f.Stat()
	now, errNow := os.Stat(path)
	if err != nil || errNow != nil || !os.SameFile(open, now) {
		return false, true // it has just been replaced
	}
	return true, false
}

// Heads returns those in a folder, by their chains.
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
