package policy

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"
)

const (
	maxSlowWaiting = 1024
	maxSlowWait    = 10 * time.Second
)

// slowLimit lets slow decisions run on half of the processors at most, so
// that the other half is free for the others. A slow decision takes some 20 milliseconds.
type slowLimit struct {
	running chan struct{}
	waiting atomic.Int32
}

func newSlowLimit() *slowLimit {
	return &slowLimit{running: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2))}
}

// acquire waits until the caller may decide. Without an error, the caller must
// call release afterwards.
func (l *slowLimit) acquire(ctx context.Context) error {
	select {
	case l.running <- struct{}{}:
		return nil
	default:
	}
	defer l.waiting.Add(-1)
	if l.waiting.Add(1) > maxSlowWaiting {
		return ErrCostly
	}
	late := time.NewTimer(maxSlowWait)
	defer late.Stop()
	select {
	case l.running <- struct{}{}:
		return nil
	case <-late.C:
		return ErrCostly
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *slowLimit) release() { <-l.running }
