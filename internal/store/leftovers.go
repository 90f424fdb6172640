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
	lookEvery = 24 * time.Hour
	// lookFiles are looked at together, with lookPause between two lots.
	lookFiles = 256
	lookPause = 20 * time.Millisecond
	// unfinished is the age at which nobody is writing a file any more.
	unfinished = time.Hour
)

// look goes through the bodies for what a sudden end has left behind. A file
// that is not finished goes. A body that no row names may be what something was
// decided by just before the end, or before the index was damaged: it joins the
// superseded ones, and goes in its turn.
// It returns false if the store was closed before the end.
func (d *Disk) look() bool {
	for i := range 256 {
		if d.stopped() {
			return false
		}
		if err := d.lookInto(filepath.Join(d.bodies.dir, fmt.Sprintf("%02x", i))); err != nil {
			d.log.Warn("snapshots that nothing names can't be looked for", "error", err)
			break
		}
	}
	return true
}

func (d *Disk) lookInto(dir string) error {
	f, err := os.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	for {
		names, err := f.Readdirnames(lookFiles)
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = d.adopt(dir, names)
		}
		if err != nil || !d.pause(lookPause) {
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
	return d.change(func(c *change) error {
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

// adopt makes a body history of no origin, if it is one that no row names.
func (c *change) adopt(digest string, info fs.FileInfo) error {
	if !isDigest(digest) || !info.Mode().IsRegular() {
		return nil
	}
	if _, n, err := c.naming(digest); err != nil || n.rows > 0 {
		return err
	}
	at := info.ModTime()
	if err := c.name(digest, info.Size()); err != nil {
		return err
	}
	if err := c.supersede("", Answer{From: at, To: at, Snapshot: &policy.Snapshot{Fetched: at, SHA256: digest}}); err != nil {
		return err
	}
	return c.unname(digest) // supersede has named it as well
}
