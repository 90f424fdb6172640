// Package store keeps records of origins' robots.txt beyond the life of
// the process.
//
// [Open] returns a [Disk], which is a policy.Store in a folder. [Read] reads the folder
// while a gate uses it. A [Memory] is for a process without a folder.
//
// On disk there are two things: bodies as files that never change, named by their
// SHA-256, so that equal files are kept once and evidence can be read while a
// gate runs; and an index of records by key, which one process uses at a time.
//
// The index has the last answers of each origin, and the answers that they have
// superseded ([Answer]), which stay as evidence. It counts how many of
// its rows name a body: the body is removed with the last of them.
package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"log/slog"
	"maps"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"robotsgate/policy"
)

const (
	indexFile = "snapshots.db"
	bodiesDir = "snapshots"

	// lockWait is how long Open waits for another process to release the index.
	lockWait = 300 * time.Millisecond
)

// ErrInUse says that another process uses the index.
var ErrInUse = errors.New("another gate uses the folder")

// A Disk is a policy.Store in a folder.
type Disk struct {
	db     *bbolt.DB
	bodies *bodies
	limits Limits
	log    *slog.Logger

	writing   sync.Mutex            // held while rows and bodies change together, so that no body is removed that a new row names
	used      usage                 // guarded by writing
	published atomic.Pointer[usage] // a copy of used, for readers that don't wait

	broken  atomic.Bool   // after a fault: bbolt may hold its locks for ever
	failed  chan struct{} // closed when broken is set
	failing sync.Once

	wake       chan struct{}
	stop       chan struct{}
	ending     sync.Once
	maintained chan struct{} // closed when maintain has returned
}

var errBroken = errors.New("the snapshot index can't be read any more; restart the gate, which then sets it aside")

// Open returns the store in dir, and makes it on first use. A corrupt index is
// set aside and replaced by a new one: snapshots can be fetched again. The error is
// ErrInUse if another process uses it.
func Open(dir string, limits Limits, log *slog.Logger) (*Disk, error) {
	b, err := newBodies(filepath.Join(dir, bodiesDir))
	if err != nil {
		return nil, err
	}
	db, used, err := openIndex(filepath.Join(dir, indexFile), log)
	if err != nil {
		return nil, err
	}
	d := &Disk{
		db: db, bodies: b, limits: limits, log: log, used: used, failed: make(chan struct{}),
		wake: make(chan struct{}, 1), stop: make(chan struct{}), maintained: make(chan struct{}),
	}
	d.published.Store(&used)
	go d.maintain()
	return d, nil
}

// Close ends the store. Load finds nothing afterwards.
func (d *Disk) Close() error {
	d.ending.Do(func() { close(d.stop) })
	select {
	case <-d.maintained:
	case <-d.failed:
		return nil // Save has reported it
	}
	if d.broken.Load() {
		return nil
	}
	return d.db.Close()
}

// Load returns the record under a key. A record that can't be read is as if it were not there.
func (d *Disk) Load(_ context.Context, key string) (policy.Record, bool) {
	r, err := d.load(key)
	if err != nil {
		d.log.Warn("a stored snapshot can't be read; it will be fetched again", "origin", key, "error", err)
	}
	if err != nil || r == nil {
		return policy.Record{}, false
	}
	return r.Record, true
}

// load returns the row under a key with its body, nil if there is none.
func (d *Disk) load(key string) (*row, error) {
	var before []byte
	for {
		value, err := d.value(key)
		if value == nil || err != nil {
			return nil, err
		}
		r, err := d.read([]byte(key), value)
		// The body may have been removed after the row was read: then there is another row.
		if !errors.Is(err, fs.ErrNotExist) || bytes.Equal(value, before) {
			return r, err
		}
		before = value
	}
}

func (d *Disk) read(key, value []byte) (*row, error) {
	r, err := openRow(key, value)
	if err != nil {
		return nil, err
	}
	if r.Good != nil {
		if r.Body, err = d.bodies.read(r.Good.SHA256); err != nil {
			return nil, err
		}
	}
	if r.Last == nil {
		r.Last = r.Good // as for most origins, and so kept once
	}
	return &r, nil
}

func (d *Disk) value(key string) (data []byte, err error) {
	err = d.view(func(tx *bbolt.Tx) error {
		data = bytes.Clone(tx.Bucket(recordsBucket).Get([]byte(key)))
		return nil
	})
	return data, err
}

// view reads the index. After Close it finds nothing.
func (d *Disk) view(f func(*bbolt.Tx) error) (err error) {
	if d.broken.Load() {
		return nil
	}
	defer d.recovered(&err)
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	if err = d.db.View(f); errors.Is(err, bolterrors.ErrDatabaseNotOpen) {
		return nil
	}
	return err
}

// recovered turns a panic into an error. bbolt panics at damage, and releases
// its locks. A fault, when the file has become shorter or the disk fails,
// may occur while bbolt takes them.
func (d *Disk) recovered(err *error) {
	switch cause := recover().(type) {
	case nil:
	case interface{ Addr() uintptr }:
		d.broken.Store(true)
		d.failing.Do(func() { close(d.failed) })
		*err = errBroken
	default:
		*err = fmt.Errorf("the snapshot index is damaged (%v); restart the gate, which then sets it aside", cause)
	}
}

// Acquire grants permission at once: no other process uses the folder.
func (d *Disk) Acquire(context.Context, string) (release func(), changed bool) {
	return func() {}, false
}

// Save writes records in batches, each with its bodies first, so that no row ever
// names a body that is not there. A batch also makes room for itself.
func (d *Disk) Save(_ context.Context, records map[string]policy.Record) error {
	rows, length := d.limits.batch()
	var batch []string
	var size int64
	// In the order of the index, so that a batch changes few pages.
	keys := slices.Sorted(maps.Keys(records))
	for i, key := range keys {
		batch = append(batch, key)
		size += int64(len(records[key].Body))
		if len(batch) < rows && size < length && i < len(keys)-1 {
			continue
		}
		if err := d.save(batch, records); err != nil {
			return withAdvice(err, filepath.Dir(d.bodies.dir))
		}
		batch, size = batch[:0], 0
	}
	return nil
}

func (d *Disk) save(keys []string, records map[string]policy.Record) error {
	d.writing.Lock()
	defer d.writing.Unlock()
	if d.broken.Load() {
		return errBroken
	}
	var made []string // bodies that no row names yet
	for _, key := range keys {
		good := records[key].Good
		if good == nil {
			continue
		}
		isNew, err := d.bodies.write(good.SHA256, records[key].Body)
		if err != nil {
			d.removeBodies(slices.Values(made))
			return err
		}
		if isNew {
			made = append(made, good.SHA256)
		}
	}
	err := d.changeLocked(func(c *change) error {
		for _, key := range keys {
			if err := c.save(key, records[key]); err != nil {
				return err
			}
		}
		more, err := d.evict(c, max(8*len(keys), sweepRows))
		if more {
			d.nudge()
		}
		return err
	})
	if err != nil {
		d.removeBodies(slices.Values(made)) // no row counts them
	}
	return err
}

// changeLocked carries out a change of the index, then removes the bodies that no row
// names any more. The caller holds writing.
func (d *Disk) changeLocked(f func(*change) error) (err error) {
	if d.broken.Load() {
		return errBroken
	}
	defer d.recovered(&err)
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	var c *change
	err = d.db.Update(func(tx *bbolt.Tx) error {
		c = newChange(tx, d.used)
		return f(c)
	})
	if err != nil {
		return err
	}
	d.used = c.used
	d.published.Store(new(c.used)) // a copy, which does not keep the transaction in memory
	d.removeBodies(maps.Keys(c.unreferenced))
	return nil
}

func (d *Disk) removeBodies(digests iter.Seq[string]) {
	for digest := range digests {
		if err := d.bodies.remove(digest); err != nil {
			d.log.Warn("a snapshot that is no longer needed can't be removed", "error", err)
		}
	}
}
