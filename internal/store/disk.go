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
	"os"
	"path/filepath"
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
	bodies bodies
	limits Limits
	log    *slog.Logger

	writing   sync.Mutex            // held while rows and bodies change together, so that no body is removed that a new row names
	used      usage                 // guarded by writing
	published atomic.Pointer[usage] // a copy of used, for readers that don't wait

	sound      context.Context // ends at a fault: bbolt may hold its locks for ever after it
	setBroken  context.CancelFunc
	open       context.Context // ends with Close
	stop       context.CancelFunc
	wake       chan struct{}
	maintained chan struct{} // closed when maintain has returned
}

// Open returns the store in dir, and makes it on first use. A corrupt index is
// set aside and replaced by a new one: snapshots can be fetched again. The error is
// ErrInUse if another process uses it.
func Open(dir string, limits Limits, log *slog.Logger) (*Disk, error) {
	b := bodies{filepath.Join(dir, bodiesDir)}
	if err := os.MkdirAll(b.dir, 0o700); err != nil {
		return nil, withAdvice(err, dir)
	}
	db, used, err := openIndex(filepath.Join(dir, indexFile), log)
	if err != nil {
		return nil, err
	}
	d := &Disk{
		db: db, bodies: b, limits: limits, log: log, used: used,
		wake: make(chan struct{}, 1), maintained: make(chan struct{}),
	}
	d.sound, d.setBroken = context.WithCancel(context.Background())
	d.open, d.stop = context.WithCancel(context.Background())
	d.published.Store(&used)
	go d.maintain()
	return d, nil
}

// Close ends the store. Load finds nothing afterwards.
func (d *Disk) Close() error {
	d.stop()
	select {
	case <-d.maintained:
	case <-d.sound.Done():
	}
	if d.sound.Err() != nil {
		return nil // Save has reported it
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
	r, err := d.read(key)
	if errors.Is(err, fs.ErrNotExist) { // a change may have removed the body since the row was read
		d.writing.Lock()
		defer d.writing.Unlock()
		return d.read(key)
	}
	return r, err
}

func (d *Disk) read(key string) (*row, error) {
	var value []byte
	err := d.view(func(tx *bbolt.Tx) error {
		value = bytes.Clone(tx.Bucket(recordsBucket).Get([]byte(key)))
		return nil
	})
	if value == nil || err != nil {
		return nil, err
	}
	r, err := unmarshal[row]([]byte(key), value)
	if err != nil {
		return nil, err
	}
	if r.Good != nil {
		r.Body, err = d.bodies.read(r.Good.SHA256)
		if errors.Is(err, ErrChanged) {
			_ = d.bodies.remove(r.Good.SHA256) // so that it is written anew
		}
		if err != nil {
			return nil, err
		}
	}
	if r.Last == nil {
		r.Last = r.Good // as for most origins, and so kept once
	}
	return &r, nil
}

// view reads the index. After Close and after a fault it finds nothing.
func (d *Disk) view(f func(*bbolt.Tx) error) error {
	if d.sound.Err() != nil {
		return nil
	}
	err := d.guarded(func() error { return d.db.View(f) })
	if errors.Is(err, bolterrors.ErrDatabaseNotOpen) {
		return nil
	}
	return err
}

func (d *Disk) guarded(f func() error) error {
	err := guarded(f)
	if err == errFault {
		d.setBroken()
	}
	if errors.Is(err, errDamaged) {
		return fmt.Errorf("%w; restart the gate, which then sets it aside", err)
	}
	return err
}

// Acquire grants permission at once: no other process uses the folder.
func (d *Disk) Acquire(context.Context, string) (release func(), changed bool) {
	return nil, false
}

// Save writes records in batches, each with its bodies first, so that no row ever
// names a body that is not there. A batch also makes room for itself.
func (d *Disk) Save(_ context.Context, records map[string]policy.Record) error {
	// In the order of the index, so that a batch changes few pages.
	for keys := range slices.Chunk(slices.Sorted(maps.Keys(records)), d.limits.batch()) {
		if err := d.save(keys, records); err != nil {
			return withAdvice(err, filepath.Dir(d.bodies.dir))
		}
	}
	return nil
}

func (d *Disk) save(keys []string, records map[string]policy.Record) (err error) {
	d.writing.Lock()
	defer d.writing.Unlock()
	var made []string // bodies that no row names yet
	defer func() {
		if err != nil {
			d.removeBodies(slices.Values(made)) // no row counts them
		}
	}()
	for _, key := range keys {
		good := records[key].Good
		if good == nil {
			continue
		}
		isNew, err := d.bodies.write(good.SHA256, records[key].Body)
		if err != nil {
			return err
		}
		if isNew {
			made = append(made, good.SHA256)
		}
	}
	return d.changeLocked(func(c *change) {
		for _, key := range keys {
			c.save(key, records[key])
		}
		if d.evict(c, max(8*len(keys), sweepRows)) {
			d.nudge()
		}
	})
}

// changeLocked carries out a change of the index, then removes the bodies that no row
// names any more. The caller holds writing.
func (d *Disk) changeLocked(f func(*change)) error {
	if d.sound.Err() != nil {
		return errFault
	}
	var c *change
	err := d.guarded(func() error {
		return d.db.Update(func(tx *bbolt.Tx) error {
			c = newChange(tx, d.used)
			f(c)
			return c.err
		})
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
		if err := d.bodies.remove(digest); err != nil && !errors.Is(err, fs.ErrNotExist) {
			d.log.Warn("a snapshot that is no longer needed can't be removed", "error", err)
		}
	}
}
