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
	"syscall"
	"time"
	"unsafe"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// The index's buckets. The others are derived from the first two.
var (
	recordsBucket = []byte("records") // key of a [policy.Scope] → row
	historyBucket = []byte("history") // [historyKey] → Answer
	dropsBucket   = []byte("drops")   // [dropKey] of each of their keys → empty
	bodiesBucket  = []byte("bodies")  // digest → bodyRefs

	buckets = [][]byte{recordsBucket, historyBucket, dropsBucket, bodiesBucket}
)

var indexOptions = bbolt.Options{Timeout: lockWait, FreelistType: bbolt.FreelistMapType}

// openIndex opens the index, and sets a corrupt one aside.
func openIndex(path string, log *slog.Logger) (*bbolt.DB, usage, error) {
	info, statErr := os.Stat(path)
	db, used, err := openSound(path)
	if err == nil && statErr == nil && info.Size() == 0 {
		log.Warn("the snapshot index was empty; robots.txt files will be fetched again", "index", path)
	}
	if err == nil {
		return packed(db, path, log), used, nil
	}
	if !damaged(err) {
		return nil, used, withAdvice(err, filepath.Dir(path))
	}
	// One is enough for an examination; a failing disk must not fill up with them.
	earlier, _ := filepath.Glob(path + ".corrupt-*")
	aside := path + ".corrupt-" + time.Now().UTC().Format("20060102T150405Z")
	if renameErr := os.Rename(path, aside); renameErr != nil {
		return nil, used, fmt.Errorf("%s is corrupt (%w) and can't be set aside: %w", path, err, renameErr)
	}
	log.Warn("the snapshot index was corrupt; it is set aside and begun anew, robots.txt files will be fetched again", "index", path, "kept_as", aside, "error", err)
	for _, file := range earlier {
		if file != aside {
			os.Remove(file)
		}
	}
	return openSound(path)
}

// openSound opens the index and reads enough of it to know that it is sound.
func openSound(path string) (db *bbolt.DB, used usage, err error) {
	before, _ := os.Stat(path)
	err = guarded(func() (err error) {
		options := indexOptions
		db, err = bbolt.Open(path, 0o600, &options)
		if errors.Is(err, bolterrors.ErrTimeout) {
			return fmt.Errorf("%s: %w", path, ErrInUse)
		}
		if err != nil {
			return err
		}
		if err := replaced(path, before); err != nil {
			return err
		}
		if used, err = walk(db, path); err != nil {
			return err
		}
		return db.Update(func(tx *bbolt.Tx) error {
			for _, name := range buckets {
				if _, err := tx.CreateBucketIfNotExists(name); err != nil {
					return err
				}
			}
			return nil
		})
	})
	if err != nil && db != nil {
		db.Close()
	}
	return db, used, err
}

var (
	errDamaged = errors.New("the snapshot index is damaged")
	// errFault says that the file has become shorter than its header says, or that the disk fails.
	errFault = fmt.Errorf("%w: a part of it can't be read", errDamaged)
)

// guarded calls f. It returns a panic, with which bbolt reacts to some kinds of damage, as errDamaged,
// and a signal that the kernel sends for a read of the file as errFault.
func guarded(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch cause := recover().(type) {
		case nil:
		case interface{ Addr() uintptr }:
			err = errFault
		default:
			err = fmt.Errorf("%w (%v)", errDamaged, cause)
		}
	}()
	return f()
}

// walk reads every row, since damage to a page would otherwise show while requests
// wait. It takes about 50 ms for 100,000 records. It returns the sum of the rows.
func walk(db *bbolt.DB, path string) (used usage, err error) {
	err = db.View(func(tx *bbolt.Tx) error {
		if info, err := os.Stat(path); err != nil || info.Size() < tx.Size() {
			return errors.Join(err, errors.New("it is shorter than it says"))
		}
		for _, name := range buckets {
			b := tx.Bucket(name)
			if b == nil {
				continue
			}
			var last []byte
			for key, value := range withPrefix(b, nil) {
				if pageOf(key) != pageOf(last) && (!found(b, last) || !found(b, key)) {
					return errHidden
				}
				last = key
				if err := used.addRow(name, key, value); err != nil {
					return err
				}
			}
			if !found(b, last) {
				return errHidden
			}
		}
		return nil
	})
	return used, err
}

// addRow counts a row of a bucket, and verifies its checksum if it has one.
func (u *usage) addRow(bucket, key, value []byte) (err error) {
	u.add(bytes.Equal(bucket, recordsBucket), key, value, 1)
	switch string(bucket) {
	case string(recordsBucket), string(historyBucket):
		_, err = verify(key, value)
	case string(bodiesBucket):
		var n bodyRefs
		n, err = openRefs(key, value)
		u.bodies += n.cost()
	}
	return err
}

// errHidden is damage to a key by which bbolt finds a page, which has no checksum: bbolt then looks
// for some rows of the page elsewhere, the first or the last among them.
var errHidden = errors.New("a row is not where it is looked for")

func found(b *bbolt.Bucket, key []byte) bool { return key == nil || b.Get(key) != nil }

// pageOf returns the page of the file's memory that holds a key.
func pageOf(key []byte) uintptr {
	return uintptr(unsafe.Pointer(unsafe.SliceData(key))) / uintptr(os.Getpagesize())
}

// damaged reports whether an error is in the content of the index: an index is not set aside if
// the system refused an operation, as with wrong permissions or a full disk.
func damaged(err error) bool {
	return !errors.Is(err, ErrInUse) && !errors.As(err, new(syscall.Errno))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(key, value []byte) uint32 {
	return crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, value)
}

// withChecksum puts a checksum before a value. bbolt has none for its pages, and a
// flipped bit must not turn a 503 into a 403, or one origin into another.
func withChecksum(key, value []byte) []byte {
	return append(binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(value)), checksum(key, value)), value...)
}

// verify returns the value without its checksum.
func verify(key, row []byte) ([]byte, error) {
	if len(row) < 4 || binary.BigEndian.Uint32(row) != checksum(key, row[4:]) {
		return nil, errors.New("a record does not match its checksum")
	}
	return row[4:], nil
}

// unmarshal returns the value of a row that [change.putJSON] has put.
func unmarshal[T any](key, row []byte) (value T, err error) {
	data, err := verify(key, row)
	if err == nil {
		err = json.Unmarshal(data, &value)
	}
	return value, err
}
