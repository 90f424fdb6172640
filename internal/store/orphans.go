package store

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.etcd.io/bbolt"

	"robotsgate/policy"
)

const (
	scanEvery = 24 * time.Hour
	// scanFiles are examined together, with a scanPause after them.
	scanFiles = 256
	scanPause = 20 * time.Millisecond
	// unfinished is the age at which no process is writing a file any more.
	unfinished = time.Hour
)

// scanBodies looks for files that a crash has left behind. Unfinished ones are
// removed. A body that no row names may be evidence for decisions just before the
// crash, or before the index was damaged. It is adopted as a superseded answer, and dropped in its turn.
func (d *Disk) scanBodies() {
	for i := range 256 {
		dir := filepath.Join(d.bodies.dir, fmt.Sprintf("%02x", i))
		entries, err := os.ReadDir(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		for some := range slices.Chunk(entries, scanFiles) {
			if err == nil {
				err = d.adopt(dir, some)
			}
			if !d.pause(scanPause) {
				return
			}
		}
		if err != nil {
			d.log.Warn("snapshots that nothing names can't be looked for", "error", err)
			return
		}
	}
}

// adopt adopts the bodies among files that no row names, and removes old unfinished ones.
func (d *Disk) adopt(dir string, files []fs.DirEntry) error {
	err := d.view(func(tx *bbolt.Tx) error {
		named := tx.Bucket(bodiesBucket)
		files = slices.DeleteFunc(files, func(e fs.DirEntry) bool {
			key, err := hex.DecodeString(e.Name())
			return err == nil && named.Get(key) != nil
		})
		return nil
	})
	if err != nil || len(files) == 0 {
		return err
	}
	d.writing.Lock()
	defer d.writing.Unlock()
	return d.changeLocked(func(c *change) {
		for _, e := range files {
			info, err := e.Info()
			if err != nil {
				continue // gone meanwhile
			}
			if strings.HasPrefix(e.Name(), tempPrefix) && time.Since(info.ModTime()) >= unfinished {
				os.Remove(filepath.Join(dir, e.Name()))
			}
			c.adopt(e.Name(), info)
		}
		d.evict(c, sweepRows)
	})
}

// adopt makes a body history without a scope, if no row names it.
func (c *change) adopt(digest string, info fs.FileInfo) {
	if !isDigest(digest) || !info.Mode().IsRegular() {
		return
	}
	if _, n := c.refs(digest); n.count > 0 {
		return
	}
	at := info.ModTime()
	c.addRef(digest, info.Size())
	c.supersede("", Answer{From: at, To: at, Snapshot: &policy.Snapshot{Fetched: at, SHA256: digest}})
	c.dropRef(digest) // supersede has added one as well
}
