//go:build unix

package cli

import (
	"math"
	"syscall"
)

// descriptorLimit returns how many files the process may have open, 0 if that can't be told.
// The Go runtime has raised the soft limit to the hard one, and gives the original back to
// processes that are started.
func descriptorLimit() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return int(min(uint64(limit.Cur), math.MaxInt32)) // there may be none
}
