//go:build unix

package gatetest

import (
	"syscall"
	"testing"
	"time"
)

// CPUTime returns the processor time that the process has used. Unlike the time of a clock it does not grow
// with the load of the machine.
func CPUTime(t testing.TB) time.Duration {
	t.Helper()
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		t.Fatal(err)
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}
