//go:build unix

package gate

import (
	"math"
	"syscall"
)

// descriptorLimit returns how many files the process may have open, 0 if it is not known.
// The Go runtime has raised the soft limit to the hard limit, for this process only.
func descriptorLimit() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return int(min(uint64(limit.Cur), math.MaxInt32)) // it may be unlimited
}
