package store

import (
	"bytes"
	"time"

	"go.etcd.io/bbolt"
)

// Limits bounds what a Disk keeps.
type Limits struct {
	Keep time.Duration // of superseded snapshots
	// Bytes bounds everything on disk, give or take a batch of
	// [Disk.Save]. First the oldest superseded snapshots are dropped, then the origins
	// that were fetched longest ago.
	Bytes int64
}

// rows bounds the index's rows to an eighth of the bytes. Its pages may be half empty,
// and bbolt writes a new page before it frees the old one, so that
// the file may be several times as large. It never shrinks, but freed space
// is used again. The rest is for bodies, half of the bytes at least.
func (l Limits) rows() int64 { return l.Bytes / 8 }

func (l Limits) bodies(index int64) int64 {
	const folders = 256 * block
	return max(l.Bytes-index-folders, l.Bytes/2)
}

// batch is the size of a full transaction of Save. Large ones are fast, since each
// waits for the disk, but their bodies are written before there is room for them.
func (l Limits) batch() (rows int, bytes int64) {
	return int(min(max(l.Bytes>>15, 64), 2048)), min(max(l.Bytes>>4, 64<<10), 8<<20)
}

// over reports whether something has to be dropped.
func (l Limits) over(u usage, index int64) bool {
	return u.rows > l.rows() || u.bodies > l.bodies(index)
}

const (
	sweepEvery = time.Hour
	// sweepRows bounds a transaction of the sweep, sweepPause is between two.
	sweepRows  = 256
	sweepPause = 50 * time.Millisecond
)

// evict drops what is over the limits, maxRows at once. more says that
// there may be more.
func (d *Disk) evict(c *change, maxRows int) (more bool, err error) {
	now := time.Now()
	for range maxRows {
		over := d.limits.over(c.used, c.tx.Size())
		stamp, _ := c.ended.Cursor().First()
		switch {
		case stamp != nil && (over || d.expired(stamp, now)):
			err = c.dropEnded(stamp)
		case over:
			if stamp, _ = c.seen.Cursor().First(); stamp == nil {
				return false, nil
			}
			err = c.dropSeen(stamp)
		default:
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	return true, nil
}

// expired reports whether a row of ended has been kept long enough.
func (d *Disk) expired(stamp []byte, now time.Time) bool {
	to, _ := splitTimeKey(stamp)
	return now.Sub(to) >= d.limits.Keep
}

func (c *change) dropEnded(stamp []byte) error {
	stamp = bytes.Clone(stamp)
	_, key := splitTimeKey(stamp)
	if err := c.dropAnswer(key); err != nil {
		return err
	}
	return c.delete(c.ended, stamp) // even if there is no such answer
}

func (c *change) dropSeen(stamp []byte) error {
	stamp = bytes.Clone(stamp)
	_, key := splitTimeKey(stamp)
	if err := c.dropRecord(key); err != nil {
		return err
	}
	return c.delete(c.seen, stamp)
}

// maintain keeps the store within its limits, in small steps, until Close.
func (d *Disk) maintain() {
	defer close(d.maintained)
	var scanned time.Time
	for {
		d.sweep()
		if time.Since(scanned) >= scanEvery && d.scanBodies() {
			scanned = time.Now()
			d.sweep()
		}
		select {
		case <-d.wake:
		case <-time.After(sweepEvery):
		case <-d.stop:
			return
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
	for d.due() {
		more, err := d.step()
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
		stamp, _ := tx.Bucket(endedBucket).Cursor().First()
		due = d.limits.over(d.used, tx.Size()) || stamp != nil && d.expired(stamp, time.Now())
		return nil
	})
	return due && err == nil
}

func (d *Disk) step() (more bool, err error) {
	d.writing.Lock()
	defer d.writing.Unlock()
	err = d.changeLocked(func(c *change) (err error) {
		more, err = d.evict(c, sweepRows)
		return err
	})
	return more, err
}

func (d *Disk) stopped() bool {
	select {
	case <-d.stop:
		return true
	default:
		return false
	}
}

// pause reports whether the store is still open afterwards.
func (d *Disk) pause(t time.Duration) bool {
	select {
	case <-time.After(t):
		return true
	case <-d.stop:
		return false
	}
}
