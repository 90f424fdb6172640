package gate

import (
	"errors"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// memoryShare is the share of a memory limit that Go may use. The rest is for
// memory that Go does not count, such as the pages of the snapshot index.
const memoryShare = 0.9

// gcPercent is Go's GOGC for a gate, unless the environment has one. A gate keeps little and allocates much, so that Go
// would collect several times a second with 100: docs/performance.md has the figures.
const gcPercent = 250

// limitMemory sets gcPercent, and Go's memory limit from the lower of the container's and the configured one, in bytes
// (0: none), unless GOMEMLIMIT is set.
func limitMemory(log *slog.Logger, container memlimit.Provider, configured int64) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	limit, err := memlimit.Set(memlimit.WithRatio(memoryShare), memlimit.WithProvider(container))
	switch {
	case errors.Is(err, memlimit.ErrNoCgroup) || errors.Is(err, memlimit.ErrCgroupsNotSupported) || errors.Is(err, fs.ErrNotExist) || err == nil && limit == math.MaxInt64:
		log.Debug("memory is not limited", "error", err)
	case err != nil:
		log.Info("the container's memory limit can't be read; if there is one, set GOMEMLIMIT to nine tenths of it", "error", err)
	default:
		log.Debug("memory is limited", "GOMEMLIMIT", limit)
	}
	own := int64(memoryShare * float64(configured))
	if own > 0 && own < debug.SetMemoryLimit(-1) && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(own)
		log.Debug("memory is limited by limits.memory", "GOMEMLIMIT", own)
	}
}
