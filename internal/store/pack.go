package store

import (
	"errors"
	"fmt"
	"log/slog"
	"os"

	"go.etcd.io/bbolt"
)

// minPacked is the size from which an index is worth packing.
const minPacked = 4 << 20

// packed returns the index, written anew if three quarters of its file are
// free: bbolt never makes it smaller. If that fails the old file is used.
func packed(db *bbolt.DB, path string, log *slog.Logger) *bbolt.DB {
	var size int64
	if err := db.View(func(tx *bbolt.Tx) error { size = tx.Size(); return nil }); err != nil {
		return db
	}
	free := int64(db.Stats().FreePageN+db.Stats().PendingPageN) * int64(db.Info().PageSize)
	if size < minPacked || free < size/4*3 {
		return db
	}
	small, err := pack(db, path)
	if err != nil {
		log.Warn("the snapshot index is mostly free space, and can't be packed; it goes on as it is", "index", path, "error", err)
		return db
	}
	db.Close() // only now, so that no other process can open one of the two before
	return small
}

// pack puts a copy in the place of an index. After a power cut the old one may be back.
func pack(db *bbolt.DB, path string) (small *bbolt.DB, err error) {
	temp := path + ".new"
	if err := os.RemoveAll(temp); err != nil { // left behind by a crash
		return nil, err
	}
	options := indexOptions
	if small, err = bbolt.Open(temp, 0o600, &options); err != nil {
		return nil, err
	}
	const txBytes = 16 << 20
	if err = bbolt.Compact(small, db, txBytes); err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		return nil, errors.Join(err, small.Close(), os.Remove(temp))
	}
	return small, nil
}

// replaced is an error if path has become another file since it was before, as
// when another process has packed it while this one waited for its lock.
func replaced(path string, before os.FileInfo) error {
	if before == nil {
		return nil
	}
	if after, err := os.Stat(path); err != nil || !os.SameFile(before, after) {
		return fmt.Errorf("%s: %w", path, ErrInUse)
	}
	return nil
}
