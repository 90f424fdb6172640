package fleet

import (
	"context"
	"errors"
	"sync"
	"time"

	"robotsgate/policy/pace"
)

// caution is how long the starts in the store count as incomplete after the store was away: it may have
// been emptied, and other gates may not have stored their starts yet. It is longer than gates take to
// connect and to announce themselves, so that their number is known at the end.
const caution = 8 * time.Second

// tellers is how many calls at once tell the store of starts.
const tellers = 16

// A paceClock is a [pace.Clock] on the store: it has the last starts of all gates at each origin, and the pauses.
type paceClock struct {
	sealer *sealer
	call   func(ctx context.Context, f func(context.Context, server) error) error
	gates  func() int                   // seen last
	reject func(what string, err error) // a value of the store

	mu     sync.Mutex
	state  clockState
	losses int
	factor int // multiplies intervals: the number of gates when the store was lost, which may have been emptied
}

type clockState int

const (
	clockAway     clockState = iota
	clockCautious            // the store is there, but may not know all starts
	clockReady
)

// newPaceClock returns a clock. The store is away until back is called.
func newPaceClock(s *sealer, call func(context.Context, func(context.Context, server) error) error, gates func() int, reject func(string, error)) *paceClock {
	return &paceClock{sealer: s, call: call, gates: gates, reject: reject, factor: 1}
}

func (c *paceClock) Reserve(r pace.Reservation) (pace.Grant, error) {
	state, factor := c.now()
	if state == clockAway {
		return pace.Grant{}, errAway
	}
	usual := r.Interval
	cautious := state == clockCautious && r.Step == 0 // a limit needs no caution: each call has the gate's own count
	if cautious {
		r.Interval = pace.Times(r.Interval, factor)
	}
	g, err := c.reserve(context.Background(), r)
	if cautious && g.Start == 0 {
		// The interval is the usual one again after the caution. Without this bound a fleet of many gates
		// gives distances that the Pacer takes for those of a clock that has jumped.
		g.Wait = min(g.Wait, max(r.Longest+time.Microsecond, usual+caution))
	}
	return g, err
}

func (c *paceClock) Alone() int {
	_, factor := c.now()
	return max(factor, c.gates())
}

func (c *paceClock) now() (clockState, int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state, c.factor
}

func (c *paceClock) reserve(ctx context.Context, r pace.Reservation) (g pace.Grant, err error) {
	err = c.call(ctx, func(ctx context.Context, s server) (err error) {
		g, err = s.reserve(ctx, c.sealer.name("pace "+r.Key), r)
		return err
	})
	return g, err
}

// away is called when the store is lost, before it can be there again.
func (c *paceClock) away() {
	gates := c.gates()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == clockReady { // else the gates seen last may be fewer than there are
		c.factor = gates
	}
	c.state = clockAway
	c.losses++
}

// back is called when the store can be used. It stores this gate's recent starts. From its call until
// caution after that, reservations have a multiple of the interval, as those of a gate alone. It
// returns at the end of caution, or when ctx ends or the store is lost again.
//
// On the first connection a gate without starts does not wait.
func (c *paceClock) back(ctx context.Context, recent func() []pace.Reservation) {
	c.mu.Lock()
	losses := c.losses
	c.state = clockCautious
	c.mu.Unlock()
	if all := recent(); len(all) > 0 || losses > 0 {
		if !c.tell(ctx, all, losses) {
			return
		}
		select {
		case <-time.After(caution):
		case <-ctx.Done():
			return
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.losses == losses {
		c.state, c.factor = clockReady, 1
	}
}

func (c *paceClock) lostSince(losses int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.losses != losses
}

// tell notes starts on the store. It reports false if the store is lost meanwhile. A call may also fail
// since the link is busy; the next reservation at that origin tells the start.
func (c *paceClock) tell(ctx context.Context, all []pace.Reservation, losses int) bool {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	next := make(chan pace.Reservation)
	var running sync.WaitGroup
	for range min(tellers, len(all)) {
		running.Go(func() {
			for r := range next {
				if _, err := c.reserve(ctx, r); errors.Is(err, errAway) && c.lostSince(losses) {
					stop()
				}
			}
		})
	}
	for _, r := range all {
		select {
		case next <- r:
		case <-ctx.Done():
		}
	}
	close(next)
	running.Wait()
	return ctx.Err() == nil
}
