package cli

import (
	"errors"
	"log/slog"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

const (
	// leastGrowth is how much the heap may grow between two collections. Go's own
	// choice, as much again as lives, collects dozens of times a second while little does.
	leastGrowth = 32 << 20
	// leastLive is the heap from which Go begins to collect.
	leastLive = 4 << 20
	// usable is the share of the container's memory that Go may fill: the rest is for
	// what it doesn't count, such as the snapshot index's pages.
	usable = 0.9
)

// tuneMemory makes garbage collection follow the memory there is, unless the
// environment says how it is to be done. Stop ends that.
func tuneMemory(log *slog.Logger) (stop func()) {
	if os.Getenv("GOMEMLIMIT") == "" {
		limitMemory(log, memlimit.FromCgroup)
	}
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	limit := debug.SetMemoryLimit(-1)
	log.Debug("the heap grows by this much at least between two collections", "bytes", growth(limit))
	return paceCollections(limit)
}

// limitMemory keeps Go's memory within that of the container, of which of returns the bytes.
func limitMemory(log *slog.Logger, of func() (uint64, error)) {
	switch bytes, err := of(); {
	case errors.Is(err, memlimit.ErrNoLimit) || errors.Is(err, memlimit.ErrNoCgroup) || errors.Is(err, memlimit.ErrCgroupsNotSupported):
		log.Debug("memory is not limited", "why", err)
	case err != nil:
		log.Info("the container's memory limit can't be read; if there is one, set GOMEMLIMIT to nine tenths of it", "error", err)
	case bytes < math.MaxInt64:
		limit := int64(usable * float64(bytes))
		debug.SetMemoryLimit(limit)
		log.Debug("memory is limited by the container", "bytes", bytes, "GOMEMLIMIT", limit)
	}
}

// growth is how much the heap may grow between two collections, whatever lives. In
// little memory it may take a quarter of it.
func growth(limit int64) int64 { return min(leastGrowth, limit/4) }

// gcPercent returns the GOGC by which the heap may grow so much, or by as much again
// as lives if that is more.
func gcPercent(live uint64, limit int64) int {
	return max(100, int(100*growth(limit)/max(int64(live), leastLive)))
}

// paceCollections sets GOGC now and after each collection, until stop returns.
func paceCollections(limit int64) (stop func()) {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	percent := 0
	set := func() {
		metrics.Read(sample)
		// Setting it stops the world for a moment: not for a few percent more or less.
		next := gcPercent(sample[0].Value.Uint64(), limit)
		if next*8 < percent*7 || next*7 > percent*8 || next == 100 && percent > 100 {
			debug.SetGCPercent(next)
			percent = next
		}
	}
	var mu sync.Mutex // cleanups have goroutines of their own
	stopped := false
	var await func()
	await = func() {
		// What nothing refers to is cleaned up after each collection. It holds a pointer:
		// small things without one share their memory, with what may live.
		runtime.AddCleanup(new(*int), func(struct{}) {
			mu.Lock()
			defer mu.Unlock()
			if !stopped {
				set()
				await()
			}
		}, struct{}{})
	}
	mu.Lock()
	defer mu.Unlock()
	set()
	await()
	return func() {
		mu.Lock()
		defer mu.Unlock()
		stopped = true
	}
}
