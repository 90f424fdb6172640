package gate

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// TestLimitMemory: nine tenths of the lower of the container's limit and the configured one, and none where none is
// known.
func TestLimitMemory(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	t.Setenv("GOMEMLIMIT", "") // restores the variable after the test
	if err := os.Unsetenv("GOMEMLIMIT"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name       string
		bytes      uint64
		err        error
		configured int64
		want       int64
		says       string
	}{
		{"limited", 10 << 30, nil, 0, 9 << 30, "GOMEMLIMIT=9663676416"},
		{"not limited", 0, memlimit.ErrNoLimit, 0, math.MaxInt64, "memory is not limited"},
		{"no container", 0, memlimit.ErrNoCgroup, 0, math.MaxInt64, "memory is not limited"},
		{"a network namespace", 0, fmt.Errorf("open: %w", fs.ErrNotExist), 0, math.MaxInt64, "memory is not limited"},
		{"no Linux", 0, memlimit.ErrCgroupsNotSupported, 0, math.MaxInt64, "memory is not limited"},
		{"absurd", math.MaxUint64, nil, 0, math.MaxInt64, "memory is not limited"},
		{"unreadable", 0, errors.New("permission denied"), 0, math.MaxInt64, "set GOMEMLIMIT"},
		{"configured", 0, memlimit.ErrNoCgroup, 10 << 30, 9 << 30, "limited by limits.memory"},
		{"configured lower", 20 << 30, nil, 10 << 30, 9 << 30, "limited by limits.memory"},
		{"configured higher", 10 << 30, nil, 20 << 30, 9 << 30, "GOMEMLIMIT=9663676416"},
	} {
		debug.SetMemoryLimit(math.MaxInt64)
		var log bytes.Buffer
		limitMemory(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})), func() (uint64, error) { return c.bytes, c.err }, c.configured)
		if got := debug.SetMemoryLimit(-1); got != c.want {
			t.Errorf("%s: the limit is %d, want %d", c.name, got, c.want)
		}
		if !strings.Contains(log.String(), c.says) {
			t.Errorf("%s: the log says %q, want %q in it", c.name, &log, c.says)
		}
	}
}

// TestCollections: garbage is collected at gcPercent, unless the environment has another one.
func TestCollections(t *testing.T) {
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	for gogc, want := range map[string]int{"": gcPercent, "80": 80} {
		debug.SetGCPercent(80) // as Go has done with GOGC=80
		t.Setenv("GOGC", gogc)
		limitMemory(slog.New(slog.DiscardHandler), func() (uint64, error) { return 0, memlimit.ErrNoLimit }, 0)
		if got := debug.SetGCPercent(100); got != want {
			t.Errorf("GOGC=%s: %d, want %d", gogc, got, want)
		}
	}
}

// TestLimitMemoryKeepsEnvironment: GOMEMLIMIT stays as it is set.
func TestLimitMemoryKeepsEnvironment(t *testing.T) {
	before := debug.SetMemoryLimit(3 << 30)
	defer debug.SetMemoryLimit(before)
	t.Setenv("GOMEMLIMIT", "3GiB")
	limitMemory(slog.New(slog.DiscardHandler), memlimit.Limit(10<<30), 2<<30)
	if got := debug.SetMemoryLimit(-1); got != 3<<30 {
		t.Errorf("the limit is %d, want GOMEMLIMIT's", got)
	}
}
