package store_test

import (
	"log/slog"
	"testing"
	"time"

	"robotsgate/internal/store"
	"robotsgate/internal/store/storetest"
	"robotsgate/policy/snapshot"
)

func openDisk(t *testing.T, dir string) *store.Disk {
	d, err := store.Open(dir, store.Limits{Keep: 100_000 * time.Hour, Bytes: 1 << 30}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

func TestDiskIsAStore(t *testing.T) {
	storetest.Test(t, func(t *testing.T) snapshot.Store { return openDisk(t, t.TempDir()) })
}

func TestDiskIsAnArchive(t *testing.T) {
	storetest.TestArchive(t, func(t *testing.T) (snapshot.Store, snapshot.Archive) {
		d := openDisk(t, t.TempDir())
		return d, d
	})
}

// TestReaderIsAnArchive: what a process saves is seen by a reader beside it.
func TestReaderIsAnArchive(t *testing.T) {
	storetest.TestArchive(t, func(t *testing.T) (snapshot.Store, snapshot.Archive) {
		dir := t.TempDir()
		d := openDisk(t, dir)
		r, err := store.Read(dir, func(err error) { t.Error(err) })
		if err != nil {
			t.Fatal(err)
		}
		return d, r
	})
}
