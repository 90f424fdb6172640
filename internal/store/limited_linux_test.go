package store

import (
	"os/signal"
	"syscall"
	"testing"

	"robotsgate/policy/snapshot"
)

// TestFullDisk: wherever the space ends, a save that fails leaves the store as it was, and the next one works.
func TestFullDisk(t *testing.T) {
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	var usual syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &usual); err != nil {
		t.Fatal(err)
	}
	limit := func(bytes uint64) {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: bytes, Max: usual.Max}); err != nil {
			t.Fatal(err)
		}
	}
	defer limit(usual.Cur)
	dir := t.TempDir()
	d := openFor(t, dir, ample)
	first, second := answered("first"), answered(robots(2, 400))
	save(t, d, map[string]snapshot.Set{origin(1): first})
	size := onDisk(t, dir)
	for more := range uint64(2400) {
		limit(uint64(d.segments[0].size) + more)
		err := d.Save(t.Context(), map[string]snapshot.Set{origin(1): second, origin(2): second})
		limit(usual.Cur)
		if err == nil {
			if more < 1200 {
				t.Errorf("saved into %d bytes", more)
			}
			loaded(t, d, origin(1), second)
			sound(t, d)
			return
		}
		if n := onDisk(t, dir); n != size {
			t.Fatalf("within %d bytes: %d on disk, want %d", more, n, size)
		}
		loaded(t, d, origin(1), first)
		absent(t, d, origin(2))
	}
	t.Error("never saved")
}
