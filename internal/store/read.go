package store

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.etcd.io/bbolt"

	"robotsgate/policy"
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
	index, path := filepath.Join(dir, indexFile), filepath.Join(temp, indexFile)
	if err := copyIndex(index, path); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	err = guarded(func() (err error) {
		r.db, err = bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: lockWait})
		return err
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s can't be read: %w", index, err), r.Close())
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

// History returns the answers of an origin to requests for its robots.txt, the oldest first.
func (r *Reader) History(origin string) (all []Answer, err error) {
	return r.history(policy.Scope{Origin: origin})
}

// TDMRepHistory returns those to requests for its tdmrep.json.
func (r *Reader) TDMRepHistory(origin string) (all []Answer, err error) {
	return r.history(policy.Scope{Origin: origin, TDMRep: true})
}

func (r *Reader) history(file policy.Scope) (all []Answer, err error) {
	err = guarded(func() error {
		return r.db.View(func(tx *bbolt.Tx) error {
			all, err = historyOf(tx, file)
			return err
		})
	})
	return all, err
}

// Origins returns the origins of a host, on all ports, of which there are answers. They are sorted.
func (r *Reader) Origins(host string) ([]string, error) {
	found := map[string]bool{}
	err := guarded(func() error {
		return r.db.View(func(tx *bbolt.Tx) error {
			for _, bucket := range [][]byte{recordsBucket, historyBucket} {
				if b := tx.Bucket(bucket); b != nil { // nil: the index is new
					addOrigins(found, b, "http://"+host)
					addOrigins(found, b, "https://"+host)
				}
			}
			return nil
		})
	})
	return slices.Sorted(maps.Keys(found)), err
}

// addOrigins adds the origins of a bucket that have a scheme and host.
func addOrigins(found map[string]bool, b *bbolt.Bucket, host string) {
	for _, crawlers := range []bool{false, true} {
		prefix := policy.Scope{Origin: host, Crawlers: crawlers}.Key()
		for key := range withPrefix(b, []byte(prefix)) {
			scope, _, _ := bytes.Cut(key, []byte{0}) // see historyKey
			origin := policy.ParseKey(string(scope)).Origin
			if origin == host || strings.HasPrefix(origin, host+":") {
				found[origin] = true
			}
		}
	}
}

// Body returns the file that a digest names. The error is fs.ErrNotExist if it is
// not kept, and ErrChanged if it does not match its name.
func (r *Reader) Body(digest string) (string, error) {
	data, err := r.bodies.read(digest)
	return string(data), err
}

// copyIndex copies an index as it was at the end of a transaction.
func copyIndex(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	defer out.Close()
	for late := time.Now().Add(copyWait); ; time.Sleep(20 * time.Millisecond) {
		before, errBefore := readMeta(in)
		// No truncation: an index does not become smaller.
		_, errCopy := io.Copy(io.NewOffsetWriter(out, 0), io.NewSectionReader(in, 0, math.MaxInt64))
		after, errAfter := readMeta(in)
		if err := errors.Join(errBefore, errCopy, errAfter); err != nil {
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

// readMeta returns the beginning of an index. It has the two meta pages, to one of which every
// transaction writes at its end.
func readMeta(index *os.File) ([]byte, error) {
	const largestPage = 64 << 10
	return io.ReadAll(io.NewSectionReader(index, 0, 2*largestPage))
}
