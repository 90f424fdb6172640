// Package store keeps what is known of origins' robots.txt beyond the life of
// the process.
//
// On disk it is two things: bodies as files that never change, named by their
// SHA-256, so that equal files are kept once and evidence can be read while a
// gate runs; and an index of records by origin, owned by one process at a time.
package store

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync/atomic"
	"syscall"
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

var recordsBucket = []byte("records")

// ErrInUse says that another process owns the index.
var ErrInUse = errors.New("another gate uses this data_dir")

// A Disk is a policy.Store in a folder.
type Disk struct {
	db     *bbolt.DB
	bodies *bodies
	log    *slog.Logger
	broken atomic.Bool // bbolt may hold its locks for ever
}

var errBroken = errors.New("the snapshot index can't be read any more; restart the gate, which then sets it aside")

// Open returns the store in dir, and makes it on first use. A corrupt index is
// set aside and begun anew: snapshots can be fetched again, a gate that does
// not start can't do anything. ErrInUse if another process owns it.
func Open(dir string, log *slog.Logger) (*Disk, error) {
	b, err := newBodies(filepath.Join(dir, bodiesDir))
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, indexFile)
	info, statErr := os.Stat(path)
	db, err := openIndex(path)
	if err == nil && statErr == nil && info.Size() == 0 {
		log.Warn("the snapshot index was empty; robots.txt files will be fetched again", "index", path)
	}
	if err != nil && damaged(err) {
		aside := path + ".corrupt-" + time.Now().UTC().Format("20060102T150405Z")
		if renameErr := os.Rename(path, aside); renameErr != nil {
			return nil, fmt.Errorf("%s is corrupt (%w) and can't be set aside: %w", path, err, renameErr)
		}
		log.Warn("the snapshot index was corrupt; it is set aside and begun anew, robots.txt files will be fetched again", "index", path, "kept_as", aside, "error", err)
		db, err = openIndex(path)
	}
	if err != nil {
		return nil, err
	}
	return &Disk{db: db, bodies: b, log: log}, nil
}

// openIndex opens the index and reads enough of it to know that it is sound.
// bbolt answers some kinds of damage with a panic, the kernel a file that is
// shorter than it says with a signal.
func openIndex(path string) (db *bbolt.DB, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if cause := recover(); cause != nil {
			if db != nil {
				db.Close()
			}
			db, err = nil, &damage{fmt.Errorf("%v", cause)}
		}
	}()
	db, err = bbolt.Open(path, 0o600, &bbolt.Options{Timeout: lockWait, FreelistType: bbolt.FreelistMapType})
	if errors.Is(err, bolterrors.ErrTimeout) {
		return nil, fmt.Errorf("%s: %w", path, ErrInUse)
	}
	if err != nil {
		return nil, blame(err)
	}
	if err = walk(db); err == nil {
		err = db.Update(func(tx *bbolt.Tx) error {
			_, err := tx.CreateBucketIfNotExists(recordsBucket)
			return err
		})
	}
	if err != nil {
		db.Close()
		return nil, blame(err)
	}
	return db, nil
}

// walk reads every record, since damage to any page would else show while
// requests wait: about 50 ms for 100,000 records.
func walk(db *bbolt.DB) error {
	return db.View(func(tx *bbolt.Tx) error {
		if info, err := os.Stat(db.Path()); err != nil || info.Size() < tx.Size() {
			return errors.Join(err, errors.New("it is shorter than it says"))
		}
		b := tx.Bucket(recordsBucket)
		if b == nil {
			return nil
		}
		return b.ForEach(func(_, row []byte) error {
			_, err := unseal(row)
			return err
		})
	})
}

// damage is an error of what the index holds.
type damage struct{ error }

// blame tells damage from what the system refuses, such as permissions or a
// full disk: an index is not set aside for that.
func blame(err error) error {
	if errors.As(err, new(syscall.Errno)) {
		return fmt.Errorf("%w; check the permissions of data_dir, and the space", err)
	}
	return &damage{err}
}

func damaged(err error) bool { return errors.As(err, new(*damage)) }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// seal puts a checksum before a record. bbolt has none for its pages, and a
// flipped bit must not turn a 503 into a 403.
func seal(record []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, crc32.Checksum(record, castagnoli)), record...)
}

// unseal returns the record of a row.
func unseal(row []byte) ([]byte, error) {
	if len(row) < 4 || binary.BigEndian.Uint32(row) != crc32.Checksum(row[4:], castagnoli) {
		return nil, errors.New("a record does not match its checksum")
	}
	return row[4:], nil
}

// Close ends the store. What is asked of it afterwards is not found.
func (d *Disk) Close() error {
	if d.broken.Load() {
		return nil // said already, by Save
	}
	return d.db.Close()
}

// Load returns the record of an origin. What can't be read is forgotten.
func (d *Disk) Load(origin string) (rec policy.Record, ok bool) {
	row, err := d.row(origin)
	if row == nil && err == nil {
		return policy.Record{}, false
	}
	if err == nil {
		rec, err = d.read(row)
	}
	if err != nil {
		d.log.Warn("a stored snapshot can't be read; it will be fetched again", "origin", origin, "error", err)
		return policy.Record{}, false
	}
	return rec, true
}

// row returns what the index has for an origin, nil if nothing.
func (d *Disk) row(origin string) (row []byte, err error) {
	if d.broken.Load() {
		return nil, nil
	}
	defer d.recovered(&err)
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	err = d.db.View(func(tx *bbolt.Tx) error {
		row = bytes.Clone(tx.Bucket(recordsBucket).Get([]byte(origin)))
		return nil
	})
	if errors.Is(err, bolterrors.ErrDatabaseNotOpen) {
		return nil, nil // a late request, after Close
	}
	return row, err
}

func (d *Disk) read(row []byte) (rec policy.Record, err error) {
	data, err := unseal(row)
	if err != nil {
		return rec, err
	}
	if err := json.Unmarshal(data, &rec); err != nil {
		return rec, err
	}
	if rec.Good != nil {
		if rec.Good.Body, err = d.bodies.read(rec.Good.SHA256); err != nil {
			return rec, err
		}
	}
	if rec.Last == nil {
		rec.Last = rec.Good // as for most origins, and so kept once
	}
	return rec, nil
}

// recovered turns a panic into an error. bbolt has them for damage, and lets go
// of its locks; a fault, where the file has become shorter or the disk fails,
// may come while it takes them.
func (d *Disk) recovered(err *error) {
	switch cause := recover().(type) {
	case nil:
	case interface{ Addr() uintptr }:
		d.broken.Store(true)
		*err = errBroken
	default:
		*err = fmt.Errorf("the snapshot index is damaged (%v); restart the gate, which then sets it aside", cause)
	}
}

// Save writes bodies first, so that no record ever names one that is not there.
func (d *Disk) Save(records map[string]policy.Record) (err error) {
	if d.broken.Load() {
		return errBroken
	}
	defer d.recovered(&err)
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	rows := make(map[string][]byte, len(records))
	for origin, rec := range records {
		if rec.Good != nil {
			if err := d.bodies.write(rec.Good.SHA256, rec.Good.Body); err != nil {
				return err
			}
		}
		if rec.Last == rec.Good {
			rec.Last = nil
		}
		data, err := json.Marshal(rec)
		if err != nil {
			return err
		}
		rows[origin] = seal(data)
	}
	return d.db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket(recordsBucket)
		for origin, row := range rows {
			if err := b.Put([]byte(origin), row); err != nil {
				return err
			}
		}
		return nil
	})
}
