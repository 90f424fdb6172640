package cli

import (
	"bytes"
	"errors"
	"log/slog"
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"testing"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

func TestGCPercent(t *testing.T) {
	const mib, none = 1 << 20, math.MaxInt64
	for _, c := range []struct {
		live  uint64
		limit int64
		want  int
	}{
		{0, none, 800}, // before the first collection
		{4 * mib, none, 800},
		{10 * mib, none, 320},
		{16 * mib, none, 200},
		{32 * mib, none, 100},
		{512 * mib, none, 100}, // a full cache is not trebled
		{math.MaxUint64 >> 1, none, 100},
		{10 * mib, 1 << 30, 320},
		{10 * mib, 64 * mib, 160}, // a quarter of a small container
		{10 * mib, 16 * mib, 100},
		{10 * mib, 0, 100},
	} {
		if got := gcPercent(c.live, c.limit); got != c.want {
			t.Errorf("%d MiB live of %d MiB: got %d, want %d", c.live/mib, c.limit/mib, got, c.want)
		}
	}
}

// TestLimitMemory: nine tenths of what the container has, and nothing where none is known.
func TestLimitMemory(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	for _, c := range []struct {
		name  string
		bytes uint64
		err   error
		want  int64
		says  string
	}{
		{"limited", 10 << 30, nil, 9 << 30, "GOMEMLIMIT=9663676416"},
		{"not limited", 0, memlimit.ErrNoLimit, before, "memory is not limited"},
		{"no container", 0, memlimit.ErrNoCgroup, before, "memory is not limited"},
		{"no Linux", 0, memlimit.ErrCgroupsNotSupported, before, "memory is not limited"},
		{"absurd", math.MaxUint64, nil, before, ""},
		{"unreadable", 0, errors.New("permission denied"), before, "set GOMEMLIMIT"},
	} {
		debug.SetMemoryLimit(before)
		var log bytes.Buffer
		limitMemory(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})), func() (uint64, error) { return c.bytes, c.err })
		if got := debug.SetMemoryLimit(-1); got != c.want {
			t.Errorf("%s: the limit is %d, want %d", c.name, got, c.want)
		}
		if c.says == "" && log.Len() > 0 || !strings.Contains(log.String(), c.says) {
			t.Errorf("%s: the log says %q, want %q in it", c.name, &log, c.says)
		}
	}
}

// TestTuneMemory: what the environment sets stays as it is.
func TestTuneMemory(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	t.Setenv("GOGC", "130")
	t.Setenv("GOMEMLIMIT", "3GiB")
	debug.SetMemoryLimit(3 << 30)
	defer debug.SetGCPercent(debug.SetGCPercent(130))
	tuneMemory(slog.New(slog.DiscardHandler))()
	if got := gogc(); got != 130 {
		t.Errorf("GOGC is %d, want what the environment says", got)
	}
	if got := debug.SetMemoryLimit(-1); got != 3<<30 {
		t.Errorf("GOMEMLIMIT is %d, want what the environment says", got)
	}
}

// TestPaceCollections: collections become rare while little lives, and are as usual
// once much does.
func TestPaceCollections(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	defer paceCollections(math.MaxInt64)()
	within := func(least, most uint64) {
		t.Helper()
		for range 1000 { // until cleanups have run
			runtime.GC()
			if got := gogc(); got >= least && got <= most {
				return
			}
		}
		t.Errorf("GOGC is %d, want %d to %d", gogc(), least, most)
	}
	within(101, 800)
	much := make([]byte, 100<<20)
	within(100, 100)
	runtime.KeepAlive(much)
	much = nil
	within(101, 800)
}

// TestPaceEnds: after stop nothing sets GOGC any more.
func TestPaceEnds(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	paceCollections(math.MaxInt64)()
	debug.SetGCPercent(123)
	for range 10 {
		runtime.GC()
	}
	if got := gogc(); got != 123 {
		t.Errorf("GOGC is %d, want 123", got)
	}
}

func gogc() uint64 {
	sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
