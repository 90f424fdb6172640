//go:build unix

package lint

import (
	"syscall"
	"testing"
	"time"
)

// cpuTime returns the processor time that the process has used: unlike the time
// on the wall it does not grow with what else the machine does.
func cpuTime(t *testing.T) time.Duration {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		t.Fatal(err)
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}
