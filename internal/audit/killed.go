package audit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"
)

// sealBytes bounds what is read of one file to find the ends of chains. A gate's own files
// are smaller.
const sealBytes = 2 * maxFile

// seal ends the chains of gates that were killed where their records end now, so that
// nothing can be added behind them any more. A chain whose end is not found, as where its
// file has been moved away, stays as it is: then its last head bounds what may follow.
func seal(dir string, key Key, log *slog.Logger) {
	heads, _ := Heads(dir) // those that can't be read are for --verify to report
	ends := map[string]*end{}
	hashes := newDigesters(key)
	files := map[string]time.Time{} // that heads name, with the time of the oldest of these heads
	for name, h := range heads {
		if h.Ended || !isDead(filepath.Join(dir, name+headSuffix)) {
			continue
		}
		ends[name] = &end{head: h, number: h.Number, hash: h.Hash, found: h.last() == h.Number}
		if at, ok := files[h.File]; !ends[name].found && !h.Stream && (!ok || h.Time.Before(at)) {
			files[h.File] = h.Time
		}
	}
	for file, since := range files {
		if _, err := os.Stat(file); err != nil {
			continue // it has been moved away, perhaps with the end of a chain
		}
		for _, path := range append(Aside(file), file) {
			if err := findEnds(path, since, ends, hashes); err != nil {
				log.Warn("where the chains of the audit log end is not known; its gate was killed", "file", path, "error", err)
			}
		}
	}
	for _, e := range ends {
		if !e.found {
			continue
		}
		h := e.head
		h.Number, h.Hash, h.Ended, h.Limit, h.Until = e.number, e.hash, true, 0, time.Time{}
		locked, err := writeHead(dir, h)
		if err != nil {
			log.Warn("the chain of a gate that was killed can't be ended; check the space and permissions of data_dir", "chain", h.Chain, "error", err)
			continue
		}
		if locked != nil {
			locked.Close()
		}
		log.Info("the audit log's chain ends here; its gate was killed", "chain", h.Chain, "number", h.Number, "hash", h.Hash)
	}
}

// An end is that of a chain, as far as its records have been found.
type end struct {
	head   Head
	number int64  // of the last record
	hash   string // of the last record
	found  bool
	over   bool // a record follows that its gate has not written
	first  time.Time
}

// findEnds reads a file, unless it was written last before the heads of interest were.
func findEnds(path string, since time.Time, ends map[string]*end, hashes digesters) error {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.ModTime().Before(since.Add(-earlier)) {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	for r := bufio.NewReaderSize(io.LimitReader(f, sealBytes), 256<<10); ; {
		text, long, err := nextLine(r)
		if i := bytes.LastIndex(text, []byte(`,"chain":"`)); i >= 0 && !long {
			chain, _, _ := bytes.Cut(text[i+len(`,"chain":"`):], []byte{'"'})
			if e := ends[string(chain)]; e != nil {
				e.follow(text, i, hashes)
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// follow takes a record of the chain, whose link begins at an index of its line.
func (e *end) follow(text []byte, at int, hashes digesters) {
	var l Link
	if json.Unmarshal(append([]byte{'{'}, text[at+1:]...), &l) != nil || e.over {
		return
	}
	if l.Number <= e.number {
		e.found = e.found || l.Number == e.number && l.Hash == e.hash
		return
	}
	r, err := parse(text)
	if err != nil {
		return
	}
	written := r.written()
	if e.first.IsZero() {
		e.first = written
	}
	// With a key that is not at hand, as after a change of the key, --verify checks the hash.
	intact, known := hashes.intact(text, l.Key)
	h := &e.head
	if l.Number != e.number+1 || l.Prev != e.hash || known && !intact || l.Number > h.last() || written.Before(h.earliest()) || written.After(h.latest(e.first)) {
		e.over = true
		return
	}
	e.number, e.hash, e.found = l.Number, l.Hash, true
}
