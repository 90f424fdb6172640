package policy

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"time"
)

// ErrCostly is an error of [Engine.Decide]: too many slow decisions are waiting already.
var ErrCostly = errors.New("too many requests wait for a decision that takes long")

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
	defer l.waiting.Add(-1)
	if l.waiting.Add(1) > maxSlowWaiting {
		return ErrCostly
	}
	ctx, cancel := context.WithTimeoutCause(ctx, maxSlowWait, ErrCostly)
	defer cancel()
	select {
	case l.running <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (l *slowLimit) release() { <-l.running }
