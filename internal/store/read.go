package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"go.etcd.io/bbolt"
)

// A Reader reads the folder of a Disk, also while a gate uses it. It does not see
// later changes.
type Reader struct {
	bodies bodies
	db     *bbolt.DB
	temp   string // folder of the copy
}

// copyWait bounds the tries to copy an index that is being changed.
const copyWait = 10 * time.Second

// Read opens the store in dir. The error is fs.ErrNotExist if there is none.
//
// A gate holds the lock of the index as long as it runs, so a copy is read. bbolt never
// writes to a page that the last transaction can reach: a copy during which no
// transaction has ended is whole.
func Read(dir string) (*Reader, error) {
	temp, err := os.MkdirTemp("", "robotsgate-")
	if err != nil {
		return nil, err
	}
	r := &Reader{bodies: bodies{filepath.Join(dir, bodiesDir)}, temp: temp}
	path := filepath.Join(temp, indexFile)
	if err := copyIndex(filepath.Join(dir, indexFile), path, copyWait); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	err = recoverFault(func() (err error) {
		r.db, err = bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: lockWait})
		return err
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s can't be read: %w", filepath.Join(dir, indexFile), err), r.Close())
	}
	_ = os.RemoveAll(temp) // so that a crash leaves nothing behind; where open files can't be removed, Close does it
	return r, nil
}

// Close removes the copy.
func (r *Reader) Close() error {
	var err error
	if r.db != nil {
		err = r.db.Close()
	}
	return errors.Join(err, os.RemoveAll(r.temp))
}

// History returns the answers of an origin, the oldest first.
func (r *Reader) History(origin string) (all []Answer, err error) {
	err = recoverFault(func() error {
		return r.db.View(func(tx *bbolt.Tx) error {
			all, err = historyOf(tx, origin)
			return err
		})
	})
	return all, err
}

// Body returns the file that a digest names. The error is fs.ErrNotExist if it is
// not kept, and ErrChanged if it does not match its name.
func (r *Reader) Body(digest string) (string, error) {
	path, err := r.bodies.path(digest)
	if err != nil {
		return "", err
	}
	data, err := readNamed(path, digest, maxBody)
	return string(data), err
}

// recoverFault calls f, and returns a panic or a fault in a damaged file as an error.
func recoverFault(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("the snapshot index is damaged (%v)", cause)
		}
	}()
	return f()
}

// copyIndex copies an index as it was at the end of a transaction.
func copyIndex(from, to string, wait time.Duration) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	for late := time.Now().Add(wait); ; time.Sleep(20 * time.Millisecond) {
		before, err := metaPages(in)
		if err != nil {
			return err
		}
		if err := copyWhole(in, to); err != nil {
			return err
		}
		after, err := metaPages(in)
		if err != nil {
			return err
		}
		if bytes.Equal(before, after) {
			return nil
		}
		if time.Now().After(late) {
			return fmt.Errorf("%s changes faster than it can be copied: try again when the gate has less to do", from)
		}
	}
}

func copyWhole(in *os.File, to string) error {
	out, err := os.OpenFile(to, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if _, err = in.Seek(0, io.SeekStart); err == nil {
		_, err = io.Copy(out, in)
	}
	return errors.Join(err, out.Close())
}

// metaPages returns the beginnings of the two meta pages. Every transaction ends with writing one of
// them, so they name the newest transactions.
func metaPages(f *os.File) ([]byte, error) {
	const size = 96 // of a page's header and bbolt's meta, and some more
	both := make([]byte, 2*size)
	if _, err := f.ReadAt(both[:size], 0); err != nil {
		return nil, fmt.Errorf("%s is no index, or has just been begun: %w", f.Name(), err)
	}
	page := int64(binary.NativeEndian.Uint32(both[24:])) // the page size, in the first
	if page < 512 || page > 1<<20 {
		page = int64(os.Getpagesize())
	}
	if _, err := f.ReadAt(both[size:], page); err != nil {
		return nil, fmt.Errorf("%s is no index, or has just been begun: %w", f.Name(), err)
	}
	return both, nil
}
