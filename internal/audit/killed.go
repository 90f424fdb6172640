package audit

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"
)

// maxScan bounds what is read of one file to find the ends of chains, in bytes. The files of a
// gate are smaller.
const maxScan = 2 * maxFile

// endKilled ends the chains of killed gates where their records end now, so that no record
// can be added after that. If the end is not found, as after the file has been moved
// away, the chain keeps its head, which bounds what may follow.
func endKilled(dir string, key Key, log *slog.Logger) {
	heads, _ := Heads(dir) // heads that can't be read are for Verifier to report
	ends := map[string]*end{}
	files := map[string]time.Time{} // of the heads, each with the time of its oldest head
	for name, h := range heads {
		if ended, _ := gateOf(filepath.Join(dir, name+headSuffix)); h.Ended || !ended {
			continue
		}
		ends[name] = &end{Head: h, found: h.last() == h.Number}
		if !ends[name].found && !h.Stream {
			files[h.File] = earliest(files[h.File], h.Time)
		}
	}
	for file, since := range files {
		if _, err := os.Stat(file); err != nil {
			continue // it has been moved away, perhaps with the end of a chain
		}
		for _, path := range append(rotatedFiles(file), file) {
			if err := findEnds(path, since, ends, newKeyring(key)); err != nil {
				log.Warn("the end of the audit log's chain was not found; its gate was killed", "file", path, "error", err)
			}
		}
	}
	for _, e := range ends {
		if !e.found {
			continue
		}
		h := e.Head
		h.Ended, h.Limit, h.Until = true, 0, time.Time{}
		locked, err := writeHead(dir, h)
		if err != nil {
			log.Warn("the chain of a killed gate can't be ended; check the space and permissions of the folder", "folder", dir, "chain", h.Chain, "error", err)
			continue
		}
		locked.Close() // does nothing if it is nil
		log.Info("the audit log's chain ends here; its gate was killed", "chain", h.Chain, "number", h.Number, "hash", h.Hash)
	}
}

// An end is the head of a chain, with the number and the hash of the last record that has been
// found of it.
type end struct {
	Head
	found bool
	over  bool // a record follows that the gate has not written
}

// findEnds reads a file, unless it has not been changed since a time.
func findEnds(path string, since time.Time, ends map[string]*end, keys keyring) error {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.ModTime().Before(since.Add(-clockSkew)) {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	const link = `,"chain":"`
	return scan(io.LimitReader(f, maxScan), func(text []byte, _, _ bool) {
		i := bytes.LastIndex(text, []byte(link))
		if i < 0 {
			return
		}
		chain, _, _ := bytes.Cut(text[i+len(link):], []byte{'"'})
		if e := ends[string(chain)]; e != nil {
			e.next(text, i, keys)
		}
	})
}

// next takes the next record of the chain, with the index of its link in the line.
func (e *end) next(text []byte, at int, keys keyring) {
	var l Link
	if json.Unmarshal(append([]byte{'{'}, text[at+1:]...), &l) != nil || e.over {
		return
	}
	if l.Number <= e.Number {
		e.found = e.found || l.Number == e.Number && l.Hash == e.Hash
		return
	}
	r, err := parse(text)
	if err != nil {
		return
	}
	// If the key is not known, as after a change of the key, Verifier checks the hash.
	intact, known := keys.intact(text, l.Key)
	written := r.written()
	if l.Number != e.Number+1 || l.Prev != e.Hash || known && !intact || l.Number > e.last() || written.Before(e.earliest()) || written.After(e.Until) {
		e.over = true
		return
	}
	e.Number, e.Hash, e.found = l.Number, l.Hash, true
}
