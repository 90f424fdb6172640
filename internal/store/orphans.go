package store

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
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
// It returns false if the store was closed before the end.
func (d *Disk) scanBodies() bool {
	for i := range 256 {
		if d.stopped() {
			return false
		}
		if err := d.scanFolder(filepath.Join(d.bodies.dir, fmt.Sprintf("%02x", i))); err != nil {
			d.log.Warn("snapshots that nothing names can't be looked for", "error", err)
			break
		}
	}
	return true
}

func (d *Disk) scanFolder(dir string) error {
	f, err := os.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	for {
		names, err := f.Readdirnames(scanFiles)
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = d.adopt(dir, names)
		}
		if err != nil || !d.pause(scanPause) {
			return err
		}
	}
}

func (d *Disk) adopt(dir string, names []string) error {
	var unknown []string
	err := d.view(func(tx *bbolt.Tx) error {
		b := tx.Bucket(bodiesBucket)
		for _, name := range names {
			if key, err := hex.DecodeString(name); err != nil || b.Get(key) == nil {
				unknown = append(unknown, name)
			}
		}
		return nil
	})
	if err != nil || len(unknown) == 0 {
		return err
	}
	d.writing.Lock()
	defer d.writing.Unlock()
	return d.changeLocked(func(c *change) error {
		for _, name := range unknown {
			info, err := os.Stat(filepath.Join(dir, name))
			if err != nil {
				continue // gone meanwhile
			}
			if strings.HasPrefix(name, tempPrefix) && time.Since(info.ModTime()) >= unfinished {
				os.Remove(filepath.Join(dir, name))
			}
			if err := c.adopt(name, info); err != nil {
				return err
			}
		}
		_, err := d.evict(c, sweepRows)
		return err
	})
}

// adopt makes a body history without a scope, if no row names it.
func (c *change) adopt(digest string, info fs.FileInfo) error {
	if !isDigest(digest) || !info.Mode().IsRegular() {
		return nil
	}
	if _, n, err := c.refs(digest); err != nil || n.count > 0 {
		return err
	}
	at := info.ModTime()
	if err := c.addRef(digest, info.Size()); err != nil {
		return err
	}
	if err := c.supersede("", Answer{From: at, To: at, Snapshot: &policy.Snapshot{Fetched: at, SHA256: digest}}); err != nil {
		return err
	}
	return c.dropRef(digest) // supersede has added one as well
}
