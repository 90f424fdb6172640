package store

import (
	"encoding/binary"
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

// The index's buckets. The rows of the first two are what is known, those of
// the others follow from them.
var (
	recordsBucket = []byte("records") // key of a [policy.Scope] → row
	historyBucket = []byte("history") // [historyKey] → Answer
	seenBucket    = []byte("seen")    // when last fetched, key → nothing
	endedBucket   = []byte("ended")   // when superseded, key in history → nothing
	bodiesBucket  = []byte("bodies")  // digest → how many rows name it, and its size

	buckets = [][]byte{recordsBucket, historyBucket, seenBucket, endedBucket, bodiesBucket}
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
		return nil, used, err
	}
	// One is enough to look at; a failing disk must not fill up with them.
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
// bbolt answers some kinds of damage with a panic, the kernel a file that is
// shorter than it says with a signal.
func openSound(path string) (db *bbolt.DB, used usage, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if cause := recover(); cause != nil {
			if db != nil {
				db.Close()
			}
			db, err = nil, &damage{fmt.Errorf("%v", cause)}
		}
	}()
	before, _ := os.Stat(path)
	options := indexOptions
	db, err = bbolt.Open(path, 0o600, &options)
	if errors.Is(err, bolterrors.ErrTimeout) {
		return nil, used, fmt.Errorf("%s: %w", path, ErrInUse)
	}
	if err != nil {
		return nil, used, blame(err)
	}
	if err := replaced(path, before); err != nil {
		db.Close()
		return nil, used, err
	}
	if used, err = walk(db, path); err == nil {
		err = db.Update(func(tx *bbolt.Tx) error {
			for _, name := range buckets {
				if _, err := tx.CreateBucketIfNotExists(name); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err != nil {
		db.Close()
		return nil, used, blame(err)
	}
	return db, used, nil
}

// walk reads every row, since damage to any page would else show while requests
// wait: about 50 ms for 100,000 records. It sums up what they come to.
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
			if err := b.ForEach(func(key, row []byte) error {
				if pageOf(key) != pageOf(last) && (!found(b, last) || !found(b, key)) {
					return errHidden
				}
				last = key
				return used.count(name, key, row)
			}); err != nil {
				return err
			}
			if !found(b, last) {
				return errHidden
			}
		}
		return nil
	})
	return used, err
}

// The keys by which bbolt finds a page have no checksum: by a changed one it looks elsewhere for
// some of its rows, the first or the last among them.
var errHidden = errors.New("a row is not where it is looked for")

func found(b *bbolt.Bucket, key []byte) bool { return key == nil || b.Get(key) != nil }

// pageOf returns which page of the file's memory holds a key.
func pageOf(key []byte) uintptr {
	return uintptr(unsafe.Pointer(unsafe.SliceData(key))) / uintptr(os.Getpagesize())
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

func checksum(key, value []byte) uint32 {
	return crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, value)
}

// seal puts a checksum before a value. bbolt has none for its pages, and a
// flipped bit must not turn a 503 into a 403, nor one origin into another.
func seal(key, value []byte) []byte {
	return append(binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(value)), checksum(key, value)), value...)
}

// unseal returns the value of a row.
func unseal(key, row []byte) ([]byte, error) {
	if len(row) < 4 || binary.BigEndian.Uint32(row) != checksum(key, row[4:]) {
		return nil, errors.New("a record does not match its checksum")
	}
	return row[4:], nil
}
