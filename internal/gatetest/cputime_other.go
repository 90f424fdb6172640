//go:build !unix

package gatetest

import (
	"testing"
	"time"
)

var began = time.Now()

// CPUTime returns the time since the process began: the time of its processor is not known here.
func CPUTime(testing.TB) time.Duration { return time.Since(began) }
