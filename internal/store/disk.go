// Package store keeps what is known of origins' robots.txt beyond the life of
// the process.
//
// On disk it is two things: bodies as files that never change, named by their
// SHA-256, so that equal files are kept once and evidence can be read while a
// gate runs; and an index of records by origin, owned by one process at a time.
//
// The index has the last answers of each origin, and those that others have
// taken the place of ([Answer]), which stay as evidence. It counts how many of
// its rows name a body: the last one takes the body along.
package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
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

	// lockWait is how long another process's hold on the index is waited for.
	lockWait = 300 * time.Millisecond
)

// ErrInUse says that another process owns the index.
var ErrInUse = errors.New("another gate uses this data_dir")

// A Disk is a policy.Store in a folder.
type Disk struct {
	db     *bbolt.DB
	bodies *bodies
	limits Limits
	log    *slog.Logger
	broken atomic.Bool   // bbolt may hold its locks for ever
	dead   chan struct{} // closed when broken is set
	dying  sync.Once

	// writing is held while rows and bodies change together, so that no body
	// goes that a row is about to name.
	writing sync.Mutex
	used    usage
	told    atomic.Pointer[usage] // used, for who does not wait

	wake   chan struct{}
	stop   chan struct{}
	ending sync.Once
	tended chan struct{} // closed when tend has returned
}

var errBroken = errors.New("the snapshot index can't be read any more; restart the gate, which then sets it aside")

// Open returns the store in dir, and makes it on first use. A corrupt index is
// set aside and begun anew: snapshots can be fetched again, a gate that does
// not start can't do anything. ErrInUse if another process owns it.
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
		db: db, bodies: b, limits: limits, log: log, used: used, dead: make(chan struct{}),
		wake: make(chan struct{}, 1), stop: make(chan struct{}), tended: make(chan struct{}),
	}
	d.told.Store(&used)
	go d.tend()
	return d, nil
}

// Close ends the store. What is asked of it afterwards is not found.
func (d *Disk) Close() error {
	d.ending.Do(func() { close(d.stop) })
	select {
	case <-d.tended:
	case <-d.dead:
		return nil // said already, by Save
	}
	if d.broken.Load() {
		return nil
	}
	return d.db.Close()
}

// Load returns the record under a key. One that can't be read is as if it were not there.
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

// load returns what the index has for an origin with its body, nil if nothing.
func (d *Disk) load(origin string) (*row, error) {
	var before []byte
	for {
		data, err := d.sealed(origin)
		if data == nil || err != nil {
			return nil, err
		}
		r, err := d.read([]byte(origin), data)
		// The body may have gone after the row was read: then there is another.
		if !errors.Is(err, fs.ErrNotExist) || bytes.Equal(data, before) {
			return r, err
		}
		before = data
	}
}

func (d *Disk) read(key, sealed []byte) (*row, error) {
	r, err := openRow(key, sealed)
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

func (d *Disk) sealed(origin string) (data []byte, err error) {
	err = d.view(func(tx *bbolt.Tx) error {
		data = bytes.Clone(tx.Bucket(recordsBucket).Get([]byte(origin)))
		return nil
	})
	return data, err
}

// view reads the index. A late request, after Close, finds nothing.
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

// recovered turns a panic into an error. bbolt has them for damage, and lets go
// of its locks; a fault, where the file has become shorter or the disk fails,
// may come while it takes them.
func (d *Disk) recovered(err *error) {
	switch cause := recover().(type) {
	case nil:
	case interface{ Addr() uintptr }:
		d.broken.Store(true)
		d.dying.Do(func() { close(d.dead) })
		*err = errBroken
	default:
		*err = fmt.Errorf("the snapshot index is damaged (%v); restart the gate, which then sets it aside", cause)
	}
}

// Save writes records in batches, each with its bodies first, so that none ever
// names one that is not there. A batch also makes room for itself.
func (d *Disk) Save(_ context.Context, records map[string]policy.Record) error {
	rows, length := d.limits.batch()
	var batch []string
	var size int64
	// In the order of the index's keys, so that a batch changes few pages.
	origins := slices.Sorted(maps.Keys(records))
	for i, origin := range origins {
		batch = append(batch, origin)
		size += int64(len(records[origin].Body))
		if len(batch) < rows && size < length && i < len(origins)-1 {
			continue
		}
		if err := d.save(batch, records); err != nil {
			return err
		}
		batch, size = batch[:0], 0
	}
	return nil
}

// Acquire grants permission at once: no other process uses the folder.
func (d *Disk) Acquire(context.Context, string) (release func(), changed bool) {
	return func() {}, false
}

func (d *Disk) save(origins []string, records map[string]policy.Record) error {
	d.writing.Lock()
	defer d.writing.Unlock()
	if d.broken.Load() {
		return errBroken
	}
	var made []string // bodies that no row names yet
	for _, origin := range origins {
		good := records[origin].Good
		if good == nil {
			continue
		}
		isNew, err := d.bodies.write(good.SHA256, records[origin].Body)
		if err != nil {
			d.unmake(made)
			return err
		}
		if isNew {
			made = append(made, good.SHA256)
		}
	}
	err := d.change(func(c *change) error {
		for _, origin := range origins {
			if err := c.save(origin, records[origin]); err != nil {
				return err
			}
		}
		more, err := d.evict(c, max(8*len(origins), sweepRows))
		if more {
			d.nudge()
		}
		return err
	})
	if err != nil {
		d.unmake(made)
	}
	return err
}

// unmake removes bodies whose rows could not be written: nothing else would count
// them. The caller holds writing.
func (d *Disk) unmake(digests []string) {
	for _, digest := range digests {
		if err := d.bodies.remove(digest); err != nil {
			d.log.Warn("a snapshot that nothing names can't be removed", "error", err)
		}
	}
}

// change carries out a change of the index, then removes the bodies that no row
// names any more. The caller holds writing.
func (d *Disk) change(f func(*change) error) (err error) {
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
	d.told.Store(new(c.used)) // a copy, which does not hold on to the transaction
	for digest := range c.unnamed {
		if err := d.bodies.remove(digest); err != nil {
			d.log.Warn("a snapshot that has had its time can't be removed", "error", err)
		}
	}
	return nil
}

// openRow reads a row of the records.
func openRow(key, sealed []byte) (r row, err error) {
	data, err := unseal(key, sealed)
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(data, &r)
}
