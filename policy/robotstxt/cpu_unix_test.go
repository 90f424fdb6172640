//go:build unix

package robotstxt

import (
	"syscall"
	"testing"
	"time"
)

// cpuTime returns the processor time that the process has used. Unlike wall-clock time it
// does not grow with the load of the machine.
func cpuTime(t *testing.T) time.Duration {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		t.Fatal(err)
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}
