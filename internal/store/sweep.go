package store

import (
	"bytes"
	"time"

	"go.etcd.io/bbolt"
)

// Limits bounds what a Disk keeps.
type Limits struct {
	Keep time.Duration `yaml:"keep" restart:"yes"` // of superseded snapshots
	// Bytes bounds everything on disk, give or take a batch of
	// [Disk.Save]. First the oldest superseded snapshots are dropped, then the origins
	// that were fetched longest ago.
	Bytes int64 `yaml:"disk_bytes" size:"yes" restart:"yes"`
}

// DefaultLimits returns the limits that suit most gates.
func DefaultLimits() Limits { return Limits{Keep: 365 * 24 * time.Hour, Bytes: 10 << 30} }

// rows bounds the index's rows to an eighth of the bytes. Its pages may be half empty,
// and bbolt writes a new page before it frees the old one, so that
// the file may be several times as large. It never shrinks, but freed space
// is used again. The rest is for bodies, half of the bytes at least.
func (l Limits) rows() int64 { return l.Bytes / 8 }

func (l Limits) bodies(index int64) int64 {
	const folders = 256 * block
	return max(l.Bytes-index-folders, l.Bytes/2)
}

// batch is the number of rows in a transaction of Save. Large ones are fast, since each
// waits for the disk, but their bodies are written before there is room for them.
func (l Limits) batch() int { return int(min(max(l.Bytes>>15, 64), 2048)) }

// due reports whether the first of the rows that can be dropped has to be.
func (l Limits) due(first []byte, used usage, index int64) bool {
	kind, at, _ := splitDropKey(first)
	return kind == superseded && time.Since(at) >= l.Keep ||
		first != nil && (used.rows > l.rows() || used.bodies > l.bodies(index))
}

const (
	sweepEvery = time.Hour
	// sweepRows bounds a transaction of the sweep, sweepPause is between two.
	sweepRows  = 256
	sweepPause = 50 * time.Millisecond
)

// evict drops what is over the limits, maxRows at once. more says that
// there may be more.
func (d *Disk) evict(c *change, maxRows int) (more bool) {
	for range maxRows {
		first, _ := c.drops.Cursor().First()
		if !d.limits.due(first, c.used, c.tx.Size()) {
			return false
		}
		first = bytes.Clone(first) // bbolt's own bytes may move
		if kind, _, key := splitDropKey(first); kind == superseded {
			c.dropAnswer(key)
		} else {
			c.dropRecord(key)
		}
		c.delete(c.drops, first) // even if there is no such row
	}
	return true
}

// maintain keeps the store within its limits, in small steps, until Close.
func (d *Disk) maintain() {
	defer close(d.maintained)
	var scanned time.Time
	for d.open.Err() == nil {
		d.sweep()
		if time.Since(scanned) >= scanEvery {
			d.scanBodies()
			scanned = time.Now()
			d.sweep()
		}
		select {
		case <-d.wake:
		case <-time.After(sweepEvery):
		case <-d.open.Done():
		}
	}
}

// nudge asks for a sweep.
func (d *Disk) nudge() {
	select {
	case d.wake <- struct{}{}:
	default: // asked for already
	}
}

func (d *Disk) sweep() {
	for d.open.Err() == nil && d.due() {
		var more bool
		d.writing.Lock()
		err := d.changeLocked(func(c *change) { more = d.evict(c, sweepRows) })
		d.writing.Unlock()
		if err != nil {
			d.log.Warn("old snapshots can't be removed", "error", err)
		}
		if err != nil || !more || !d.pause(sweepPause) {
			return
		}
	}
}

// due reports whether a sweep has something to drop, so that no transaction is written for nothing.
func (d *Disk) due() (due bool) {
	d.writing.Lock()
	defer d.writing.Unlock()
	err := d.view(func(tx *bbolt.Tx) error {
		first, _ := tx.Bucket(dropsBucket).Cursor().First()
		due = d.limits.due(first, d.used, tx.Size())
		return nil
	})
	return due && err == nil
}

// pause reports whether the store is still open afterwards.
func (d *Disk) pause(t time.Duration) bool {
	select {
	case <-time.After(t):
		return true
	case <-d.open.Done():
		return false
	}
}
