//go:build !unix

package lint

import (
	"testing"
	"time"
)

var began = time.Now()

func cpuTime(*testing.T) time.Duration { return time.Since(began) }
