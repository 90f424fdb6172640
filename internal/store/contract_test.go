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
	t.Cleanup(func() { d.Close() })
	return d
}

func TestDiskIsAStore(t *testing.T) {
	storetest.Test(t, func(t *testing.T) snapshot.Store { return openDisk(t, t.TempDir()) })
}

func TestMemoryIsAStore(t *testing.T) {
	storetest.Test(t, func(*testing.T) snapshot.Store { return store.NewMemory(1 << 20) })
}

func TestDiskIsAnArchive(t *testing.T) {
	storetest.TestArchive(t, func(t *testing.T) (snapshot.Store, snapshot.Archive) {
		d := openDisk(t, t.TempDir())
		return d, d
	})
}

func TestReaderIsAnArchive(t *testing.T) {
	storetest.TestArchive(t, func(t *testing.T) (snapshot.Store, snapshot.Archive) {
		dir := t.TempDir()
		return openDisk(t, dir), reader{t, dir}
	})
}

// A reader opens the folder for each call, beside the process that saves.
type reader struct {
	t   *testing.T
	dir string
}

func (r reader) read() *store.Reader {
	opened, err := store.Read(r.dir, 100_000*time.Hour)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { opened.Close() })
	return opened
}

func (r reader) History(origin string) ([]snapshot.Answer, error) { return r.read().History(origin) }
func (r reader) TDMRepHistory(origin string) ([]snapshot.Answer, error) {
	return r.read().TDMRepHistory(origin)
}
func (r reader) Body(digest string) (string, error)        { return r.read().Body(digest) }
func (r reader) HostOrigins(host string) ([]string, error) { return r.read().HostOrigins(host) }
