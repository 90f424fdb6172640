package pace

import (
	"iter"
	"math"
	"slices"
	"time"
)

// never is the time of a start that there was not.
const never = time.Duration(math.MinInt64 / 4)

// forever is a time that does not come.
const forever = time.Duration(math.MaxInt64 / 4)

// An origin has a clock, and a queue if requests wait. Times are durations since the Pacer's epoch.
type origin struct {
	name    string
	last    time.Duration     // the last start of a request
	fetched time.Duration     // the last start of a fetch of robots.txt
	memory  time.Duration     // how long a start is remembered
	pauses  map[string]*Pause // by product token
	shared  *shared           // nil: no start of it is shared by a Clock

	waiting int
	lines   []*line // with requests that wait; the first has the turn
	timer   *time.Timer
}

// A waiter is a request that waits.
type waiter struct {
	request  Request
	by       Source // what delays it
	origin   *origin
	arrived  time.Duration
	deadline time.Duration
	urgent   bool // it may start at once only, since its interval is longer than MaxDelay

	over chan struct{} // closed when turn and err are set
	turn *Turn
	err  error
}

// ended reports whether the waiting has ended.
func (w *waiter) ended() bool {
	select {
	case <-w.over:
		return true
	default:
		return false
	}
}

// end ends the waiting.
func (w *waiter) end(turn *Turn, err error) {
	w.turn, w.err = turn, err
	close(w.over)
}

// due returns when a request may start, if it is the next.
func (o *origin) due(r Request) time.Duration {
	if r.distance.Interval == 0 {
		return never
	}
	return o.before(r) + r.distance.Interval
}

// before returns the last start that counts for a request.
func (o *origin) before(r Request) time.Duration {
	if r.Fetched {
		return o.last
	}
	return max(o.last, o.fetched)
}

// started notes the start of a request, and reports whether it is the first after a pause.
func (o *origin) started(r Request, now time.Duration) (first bool) {
	o.last = now
	o.memory = max(o.memory, r.distance.Interval, r.memory)
	return o.probe(r.Token, now)
}

// next returns the next request, and when it may start. While all requests are paused it returns nil,
// and when the first pause ends.
//
// A crawler that has the turn keeps it until its interval has passed, so that a short interval of
// another crawler can't starve a long one. A pause of one product token delays no other.
func (o *origin) next(now time.Duration) (w *waiter, at time.Duration) {
	at = forever
	for _, l := range o.lines {
		for _, w := range l.waiters {
			until := o.paused(w.request.Token)
			if until <= now {
				return w, o.due(w.request)
			}
			w.by = ByPause
			at = min(at, until)
		}
	}
	return nil, at
}

// earliest returns the request that may wait for the shortest time, and until when; but not one for
// which a shared clock is asked.
func (o *origin) earliest(asking *waiter) (deadline time.Duration, first *waiter) {
	deadline = forever
	for _, l := range o.lines { // not by all, which copies the lines
		for _, w := range l.waiters {
			if w != asking && w.deadline < deadline {
				deadline, first = w.deadline, w
			}
		}
	}
	return deadline, first
}

// all returns the requests that wait. They may be removed meanwhile.
func (o *origin) all() iter.Seq[*waiter] {
	return func(yield func(*waiter) bool) {
		for _, l := range slices.Clone(o.lines) {
			for _, w := range slices.Clone(l.waiters) {
				if !yield(w) {
					return
				}
			}
		}
	}
}

// wake sets the timer.
func (o *origin) wake(after time.Duration, do func()) {
	if o.timer == nil {
		o.timer = time.AfterFunc(after, do)
		return
	}
	o.timer.Reset(after)
}

// stop forgets the queue, in which no request waits.
func (o *origin) stop() {
	if o.timer != nil {
		o.timer.Stop()
		o.timer = nil
	}
	o.lines = nil
}

// idle reports whether the origin can't delay a request any more, if starts count for longest at most.
func (o *origin) idle(now, longest time.Duration) bool {
	if o.shared != nil && o.shared.asking {
		return false
	}
	for token, p := range o.pauses {
		if p.forgotten(now) {
			delete(o.pauses, token)
		}
	}
	return o.waiting == 0 && len(o.pauses) == 0 && max(o.last, o.fetched)+min(o.memory, longest) <= now
}
