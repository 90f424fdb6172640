// Package store keeps what is known of origins' robots.txt beyond the life of
// the process.
//
// On disk it is two things: bodies as files that never change, named by their
// SHA-256, so that equal files are kept once and evidence can be read while a
// gate runs; and an index of records by origin, owned by one process at a time.
package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
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
}

// Open returns the store in dir, and makes it on first use. A corrupt index is
// set aside and begun anew: snapshots can be fetched again, a gate that does
// not start can't do anything. ErrInUse if another process owns it.
func Open(dir string, log *slog.Logger) (*Disk, error) {
	b, err := newBodies(filepath.Join(dir, bodiesDir))
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, indexFile)
	db, err := openIndex(path)
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
// bbolt answers some kinds of damage with a panic.
func openIndex(path string) (db *bbolt.DB, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			if db != nil {
				db.Close()
			}
			db, err = nil, &damage{fmt.Errorf("%v", cause)}
		}
	}()
	db, err = bbolt.Open(path, 0o600, &bbolt.Options{Timeout: lockWait, FreelistType: bbolt.FreelistMapType})
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, fmt.Errorf("%s: %w", path, ErrInUse)
	case errors.As(err, new(*fs.PathError)):
		return nil, fmt.Errorf("%w; check the permissions of data_dir", err)
	case err != nil:
		return nil, &damage{err}
	}
	if err = walk(db); err == nil {
		err = db.Update(func(tx *bbolt.Tx) error {
			_, err := tx.CreateBucketIfNotExists(recordsBucket)
			return err
		})
	}
	if err != nil {
		db.Close()
		return nil, &damage{err}
	}
	return db, nil
}

// walk reads every record's place, since damage to any page would else show
// while requests wait: about 10 ms for 100,000 records.
func walk(db *bbolt.DB) error {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // a file cut short
	return db.View(func(tx *bbolt.Tx) error {
		if info, err := os.Stat(db.Path()); err != nil || info.Size() < tx.Size() {
			return errors.Join(err, errors.New("it is shorter than it says"))
		}
		b := tx.Bucket(recordsBucket)
		if b == nil {
			return nil
		}
		return b.ForEach(func(_, v []byte) error {
			if len(v) == 0 || v[0] != '{' || v[len(v)-1] != '}' {
				return errors.New("it holds a record that can't be read")
			}
			return nil
		})
	})
}

type damage struct{ error }

func damaged(err error) bool { return errors.As(err, new(*damage)) }

// Close ends the store. Nothing may be asked of it afterwards.
func (d *Disk) Close() error { return d.db.Close() }

// Load returns the record of an origin. What can't be read is forgotten.
func (d *Disk) Load(origin string) (rec policy.Record, ok bool) {
	defer func() {
		if cause := recover(); cause != nil {
			d.log.Error("the snapshot index is damaged; stop the gate and remove it", "index", d.db.Path(), "origin", origin, "panic", cause)
			rec, ok = policy.Record{}, false
		}
	}()
	var data []byte
	err := d.db.View(func(tx *bbolt.Tx) error {
		data = bytes.Clone(tx.Bucket(recordsBucket).Get([]byte(origin)))
		return nil
	})
	if err != nil || data == nil {
		return policy.Record{}, false
	}
	if err := json.Unmarshal(data, &rec); err != nil {
		d.log.Warn("a stored snapshot can't be read; it will be fetched again", "origin", origin, "error", err)
		return policy.Record{}, false
	}
	if rec.Good != nil {
		if rec.Good.Body, err = d.bodies.read(rec.Good.SHA256); err != nil {
			d.log.Warn("a stored robots.txt can't be read; it will be fetched again", "origin", origin, "error", err)
			return policy.Record{}, false
		}
	}
	if rec.LastIsGood() {
		rec.Last = rec.Good
	}
	return rec, true
}

// Save writes bodies first, so that no record ever names one that is not there.
func (d *Disk) Save(records map[string]policy.Record) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("the index %s is damaged (%v); stop the gate and remove it", d.db.Path(), cause)
		}
	}()
	rows := make(map[string][]byte, len(records))
	for origin, rec := range records {
		if rec.Good != nil {
			if err := d.bodies.write(rec.Good.SHA256, rec.Good.Body); err != nil {
				return err
			}
		}
		row, err := json.Marshal(rec)
		if err != nil {
			return err
		}
		rows[origin] = row
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

// bodies are files named by the SHA-256 of what they hold.
type bodies struct{ dir string }

func newBodies(dir string) (*bodies, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("%w; check the permissions of data_dir", err)
	}
	return &bodies{dir}, nil
}

// path spreads files over folders by the first byte of their digest.
func (b *bodies) path(digest string) (string, error) {
	if len(digest) != 64 || strings.Trim(digest, "0123456789abcdef") != "" {
		return "", fmt.Errorf("%q is not a SHA-256", digest)
	}
	return filepath.Join(b.dir, digest[:2], digest), nil
}

func (b *bodies) read(digest string) (string, error) {
	path, err := b.path(digest)
	if err != nil {
		return "", err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	if policy.Digest(string(data)) != digest {
		os.Remove(path) // so that it is written anew
		return "", fmt.Errorf("%s does not hold what its name says", path)
	}
	return string(data), nil
}

// write puts a whole file in place at once, or leaves the one that is there: a
// reader never sees half of one, and two gates may write the same.
func (b *bodies) write(digest, body string) error {
	path, err := b.path(digest)
	if err != nil {
		return err
	}
	if info, err := os.Stat(path); err == nil && info.Size() == int64(len(body)) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	_, err = f.WriteString(body)
	if err = errors.Join(err, f.Chmod(0o600), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}
