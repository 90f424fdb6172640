package pace

import (
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
	last    time.Duration    // the last start of a request
	fetched time.Duration    // the last start of a fetch of robots.txt
	fetch   time.Duration    // the same by the shared clock; 0: not known
	memory  time.Duration    // how long a start of a request is remembered; 0: none delays another
	pauses  map[string]Pause // by product token

	turn    *waiter // the request that starts next; nil: none may
	lines   []*line // with requests that wait
	waiting int
	timer   *time.Timer // of the end of a pause for which all of them wait
}

// A line has the requests of one crawler that wait, in order of arrival.
type line struct {
	crawler string
	waiters []*waiter
}

// A waiter is a request in Wait.
type waiter struct {
	request  Request
	origin   *origin // nil: nothing is known of it
	by       Source  // what has delayed it
	arrived  time.Duration
	deadline time.Duration

	queued bool
	awake  chan struct{} // has an element after its turn has come, or a pause has begun during it
	slot   *slot         // nil: none is reserved
}

func (p *Pacer) newWaiter(r Request) *waiter {
	now := p.now()
	w := &waiter{request: r, origin: p.origins[r.Origin], arrived: now, deadline: now, awake: make(chan struct{}, 1)}
	if r.distance.Interval <= p.settings.MaxDelay {
		w.deadline += min(p.settings.MaxWait, forever)
	}
	return w
}

func (w *waiter) wake() {
	select {
	case w.awake <- struct{}{}:
	default:
	}
}

// line returns the line of a crawler, nil if none of its requests wait.
func (o *origin) line(crawler string) *line {
	i := slices.IndexFunc(o.lines, func(l *line) bool { return l.crawler == crawler })
	if i < 0 {
		return nil
	}
	return o.lines[i]
}

// enter queues a request if it takes turns with others. It refuses one with a turn that would come too late.
func (p *Pacer) enter(w *waiter) error {
	r := &w.request
	w.origin = p.origins[r.Origin]
	_, by, err := p.foresee(w)
	if err != nil {
		return err
	}
	if w.by = by; by == "" && !r.paced() {
		return nil
	}
	o := p.remember(r.Origin)
	if o == nil {
		return r.noPlace(ByInterval)
	}
	l := o.line(r.Crawler)
	if l == nil { // it has its turn after all others
		l = &line{crawler: r.Crawler}
		o.lines = append(o.lines, l)
	}
	i := len(l.waiters)
	for i > 0 && l.waiters[i-1].arrived > w.arrived {
		i--
	}
	l.waiters = slices.Insert(l.waiters, i, w)
	w.origin, w.queued = o, true
	o.waiting++
	p.waiting++
	p.pass(o)
	return nil
}

// leave removes a request from the queue, and passes its turn on.
func (p *Pacer) leave(w *waiter) {
	if !w.queued {
		return
	}
	o := w.origin
	l := o.line(w.request.Crawler)
	l.waiters = slices.DeleteFunc(l.waiters, func(other *waiter) bool { return other == w })
	if len(l.waiters) == 0 {
		o.lines = slices.DeleteFunc(o.lines, func(other *line) bool { return other == l })
	}
	w.queued = false
	o.waiting--
	p.waiting--
	p.release(w)
}

// pass gives the turn to the next request if no request has it. If all requests are paused, it does so when the first
// pause ends. A pause of one product token delays no other.
func (p *Pacer) pass(o *origin) {
	now, at := p.now(), forever
	if o.turn != nil {
		if o.pause(o.turn.request.Token).Until > now {
			o.turn.wake()
		}
		return
	}
	for _, l := range o.lines {
		for _, w := range l.waiters {
			until := o.pause(w.request.Token).Until
			if until <= now {
				o.turn = w
				w.wake()
				return
			}
			w.by = ByPause
			at = min(at, until)
		}
	}
	if o.timer != nil {
		o.timer.Stop()
		o.timer = nil
	}
	if at < forever {
		o.timer = time.AfterFunc(at-now, func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.pass(o)
		})
	}
}

// release passes the turn on if the request has it, after what it has reserved is given back.
func (p *Pacer) release(w *waiter) {
	o := w.origin
	if o.turn != w {
		return
	}
	o.turn = nil
	if w.slot == nil {
		p.pass(o)
		return
	}
	o.turn = new(waiter) // until the clock has answered
	back := Reservation{Key: o.name, Since: -1, Longest: -1, Memory: o.memory, Returned: w.slot.start}
	w.slot = nil
	go func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		_, _ = p.call(back)
		o.turn = nil
		p.pass(o)
	}()
}

// idle reports whether the origin can't delay a request any more, if starts count for longest at most.
func (o *origin) idle(now, longest time.Duration, s *Config) bool {
	for token, p := range o.pauses {
		if p.Until+s.BackOff <= now { // so long ago that it does not double the next one
			delete(o.pauses, token)
		}
	}
	return o.waiting == 0 && o.turn == nil && len(o.pauses) == 0 &&
		o.last+min(o.memory, longest) <= now && o.fetched+s.MaxDelay <= now
}
