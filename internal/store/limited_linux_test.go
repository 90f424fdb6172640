package store

import (
	"os/signal"
	"strings"
	"syscall"
	"testing"
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
	first, second := answered("first"), answered(strings.Repeat("# second\n", 100_000))
	save(t, d, origin(1), first)
	// The limit is of all files: that in which the tests are logged is shorter.
	for bytes := uint64(256 << 10); bytes < 1<<20; bytes += 64 << 10 {
		limit(bytes)
		err := d.Save(t.Context(), origin(1), second)
		limit(usual.Cur)
		if err == nil {
			if bytes < 900_000 {
				t.Errorf("saved into %d bytes", bytes)
			}
			loaded(t, d, origin(1), second)
			return
		}
		if !strings.Contains(err.Error(), "check the space and permissions of "+dir) {
			t.Errorf("not clear: %v", err)
		}
		loaded(t, d, origin(1), first)
		if got := answers(t, d.Reader, origin(1)); len(got) != 1 {
			t.Fatalf("within %d bytes: the history is %q", bytes, got)
		}
	}
	t.Error("never saved")
}
