package fleet

import (
	"context"
	"math/rand/v2"
	"time"
)

const (
	// leaseTime is how long a permission to fetch outlives the gate that has it.
	leaseTime = 3 * time.Second
	// longestLease bounds a permission: that of a fetch and the save that follows.
	longestLease = time.Minute

	firstPoll = 20 * time.Millisecond // while another gate fetches
	lastPoll  = 200 * time.Millisecond
)

// Acquire asks for permission to fetch. While another gate has it, it waits. While the store is away
// this gate fetches alone.
func (f *Fleet) Acquire(ctx context.Context, key string) (release func(), changed bool) {
	name := f.sealer.name(key)
	for pause := firstPoll; ; pause = min(2*pause, lastPoll) {
		var fence int64
		err := f.link.call(ctx, func(ctx context.Context, server server) (err error) {
			fence, err = server.acquire(ctx, name, f.gate, leaseTime)
			return err
		})
		if err != nil {
			return nil, changed
		}
		if fence > 0 {
			return f.hold(name, fence), true
		}
		changed = true
		select {
		case <-time.After(pause/2 + rand.N(pause)):
		case <-ctx.Done():
			return nil, true
		}
	}
}

// hold renews a lease until it is released.
func (f *Fleet) hold(name string, fence int64) (release func()) {
	ctx, end := context.WithTimeout(f.ctx, longestLease)
	f.running.Go(func() {
		defer end()
		held := true
		for held {
			select {
			case <-time.After(leaseTime / 3):
			case <-ctx.Done():
				held = false
				continue
			}
			err := f.link.call(ctx, func(ctx context.Context, server server) (err error) {
				held, err = server.renew(ctx, name, fence, leaseTime)
				return err
			})
			held = held || err != nil // the store may be back in time
		}
		// Also when the gate ends: the others need not wait until the lease ends by itself.
		_ = f.link.call(context.Background(), func(ctx context.Context, server server) error {
			return server.release(ctx, name, fence)
		})
	})
	return end
}
