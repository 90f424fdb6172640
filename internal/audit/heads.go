package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// A Head is how far a chain has come. It is kept apart from the records, so that
// a log whose end is cut off is found out.
type Head struct {
	Chain  string    `json:"chain"`
	Number int64     `json:"number"` // 0: its first record is about to be written
	Hash   string    `json:"hash"`
	Time   time.Time `json:"time"` // when the last record was written
	File   string    `json:"file"`
	Stream bool      `json:"stream,omitempty"` // it is standard output or a pipe: where its records are kept, and which, is not known
	Ended  bool      `json:"ended,omitempty"`  // in good order: nothing may follow
}

// leastHeads is how long heads are kept at least.
const leastHeads = 48 * time.Hour

// writeHead puts a head in its place in a folder, whole.
func writeHead(dir string, h Head) error {
	data, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	path := filepath.Join(dir, h.Chain+".json")
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(data, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// settle is the queue's, a while after records: it keeps how far the chain has come,
// once the disk has the records.
func (l *Log) settle(ended bool) {
	if l.chain.number == 0 || !ended && l.chain.number == l.headAt {
		return
	}
	if l.file != nil {
		l.file.sync()
	}
	if l.keepHead(ended) {
		l.headAt = l.chain.number
	}
}

// keepHead keeps how far the chain has come. Where that can't be done it is said, and
// requests go on.
func (l *Log) keepHead(ended bool) bool {
	if l.heads == "" {
		return true
	}
	h := Head{Chain: l.chain.id, Number: l.chain.number, Hash: string(l.chain.hash[:]), Time: l.wrote.UTC(), File: "-", Stream: true, Ended: ended}
	if h.Number == 0 {
		h.Time = time.Now().UTC()
	}
	if l.file != nil {
		h.File, h.Stream = l.file.path, l.file.stream
	}
	err := writeHead(l.heads, h)
	if err != nil && time.Since(l.headErr) >= time.Minute {
		l.headErr = time.Now()
		l.log.Error("how far the audit log has come can't be kept; check the space and permissions of data_dir", "error", err)
	}
	return err == nil
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
		name, ok := strings.CutSuffix(e.Name(), ".json")
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

// sweepHeads removes those that no gate has written for so long.
func sweepHeads(dir string, keep time.Duration) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // there are none yet
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) >= max(keep, leastHeads) {
			os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}
