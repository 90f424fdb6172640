// Package pace says when a request to an origin may start. Start with [New] and [Pacer.Wait].
//
// Rules delay requests, or refuse them: an interval between two starts, a pause that the origin has
// asked for, and the places in the queue. Requests that wait for the same origin take turns by crawler,
// in order of arrival within one crawler. Gates that share a [Clock] follow the rules together.
//
// The package knows time and queues only: it sends nothing, and reads no robots.txt.
package pace

import (
	"context"
	"errors"
	"sync"
	"time"
)

// A Request is a request that is to start.
type Request struct {
	Origin  string // scheme, host and port
	Crawler string // name; requests take turns by it, and share the places in the queue
	Token   string // product token; a pause holds the requests of one token
	// CrawlDelay is what robots.txt asks for; 0: nothing. LongestDelay is the longest for any crawler: so
	// long the start of this request is remembered, at least.
	CrawlDelay, LongestDelay time.Duration
	Subresource              bool // a part of a page
	// Fetched is set if the request has waited for a fetch of the origin's robots.txt. That fetch does
	// not delay it.
	Fetched bool

	distance Distance      // by the settings
	memory   time.Duration // how long a start is remembered, at least
}

// paced reports whether the request keeps an interval to others, or others do to it.
func (r *Request) paced() bool { return r.distance.Interval > 0 || r.memory > 0 }

// A Source is what delays a request.
type Source string

// The sources.
const (
	ByInterval Source = "interval" // the request's interval, or other crawlers' turns
	ByPause    Source = "back-off" // a pause that the origin has asked for
)

// TooLate is the error for a request with a turn that would come too late, or without a place.
type TooLate struct {
	After    time.Duration // its turn would come after this time
	By       Source
	Full     bool     // MaxQueue requests wait
	Distance Distance // that the request has to keep
	Limit    Limit    // that is reached, if By is ByBudget
}

func (e *TooLate) Error() string {
	switch {
	case e.Full && e.Limit != (Limit{}):
		return "requests with too many keys are counted"
	case e.Full:
		return "too many requests wait for this origin"
	case e.Limit != (Limit{}):
		return "as many requests have started as may in this time"
	}
	return "the request's turn comes later than requests may wait"
}

// ErrClosed is the error for a request that waits when [Pacer.Close] is called, or would.
var ErrClosed = errors.New("the gate is ending")

// A Pacer has the clocks and the queues of all origins. Its methods are safe for concurrent use.
type Pacer struct {
	epoch time.Time // with a monotonic clock: times are durations since then
	clock Clock     // that other gates share; nil: there is none

	mu       sync.Mutex
	settings Config
	origins  map[string]*origin
	counts   map[countKey]*count  // of limits
	steps    int                  // of all counts
	missed   map[countKey]int     // starts that the clock must be told of
	noted    map[countKey]Kept    // starts for the next call of Kept; nil: there was none
	queued   map[*origin]struct{} // those for which requests wait
	waiting  int
	closed   bool
	sweeping bool // a removal is scheduled
	swept    time.Duration
	calls    int // of clock in the background
}

// New returns a Pacer. Its starts are shared with other gates by a clock; nil: they are not.
func New(s Config, clock Clock) *Pacer {
	return &Pacer{
		epoch: time.Now(), clock: clock, settings: s,
		origins: map[string]*origin{}, counts: map[countKey]*count{}, queued: map[*origin]struct{}{},
	}
}

// Use puts changed settings in force, for requests that wait too. They keep their places, and may wait for as
// long as before.
func (p *Pacer) Use(s Config) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.settings = s
	for _, c := range p.counts {
		c.until = 0 // the limits may be others
	}
	for _, o := range p.origins {
		o.boundPauses(s.BackOff)
	}
	now := p.now()
	for o := range p.queued {
		for w := range o.all() {
			s.measure(&w.request)
			w.deadline = max(w.deadline, w.arrived+min(s.MaxWait, forever))
		}
		p.pumpSoon(o, now)
	}
}

// A Turn is a request that may start, or has.
type Turn struct {
	Held      time.Duration // the time that it has waited
	By        Source        // what it has waited for
	Distance  Distance      // that it has kept
	Allowance Allowance     // what is left of the limit that it counts for; zero: of none

	pacer   *Pacer
	request Request
	start   time.Duration
	first   bool // after a pause
}

// Wait returns when the request may start. Its errors are [*TooLate], [ErrClosed] and that of ctx.
// The caller must call [Turn.Done] when the origin has answered. The turn is nil if the request does not count.
func (p *Pacer) Wait(ctx context.Context, r Request) (*Turn, error) {
	arrived := p.now()
	for {
		turn, err := p.await(ctx, r, arrived)
		if turn == nil || err != nil {
			return nil, err
		}
		ok, err := p.admit(turn)
		if err != nil {
			turn.Done(Response{})
			return nil, err
		}
		if ok {
			return turn, nil
		}
	}
}

// admit reports whether a request that has its turn may start. The lock is not held, since other gates may be asked.
func (p *Pacer) admit(t *Turn) (ok bool, err error) {
	if ok, err = p.admitAfterPause(t); !ok || err != nil {
		return false, err
	}
	return true, p.spend(t)
}

// await returns when the request has its turn by what this gate knows, and by the shared starts.
func (p *Pacer) await(ctx context.Context, r Request, arrived time.Duration) (*Turn, error) {
	w, turn, err := p.enter(r, arrived)
	if w == nil {
		return turn, err
	}
	select {
	case <-w.over:
	case <-ctx.Done():
		p.leave(w, ctx.Err()) // does nothing if the turn came at the same moment: other requests keep their interval to it
	}
	return w.turn, w.err
}

// enter starts a request at once, or queues it.
func (p *Pacer) enter(r Request, arrived time.Duration) (*waiter, *Turn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if !p.settings.measure(&r) {
		return nil, nil, nil
	}
	o := p.origins[r.Origin]
	deadline := arrived + min(p.settings.MaxWait, forever)
	a := p.foresee(o, &r, now, deadline)
	if err := a.err(); err != nil {
		return nil, nil, err
	}
	if o == nil && r.paced() {
		if o = p.remember(r.Origin, now); o == nil {
			return nil, nil, &TooLate{After: sweepInterval, By: ByInterval, Full: true, Distance: r.distance}
		}
	}
	if shared := p.share(o, r); !a.waits && !shared {
		return nil, p.start(o, r, now), nil
	}
	if a.waits && p.closed {
		return nil, nil, ErrClosed
	}
	w := &waiter{request: r, by: a.by, origin: o, arrived: arrived, deadline: deadline, over: make(chan struct{})}
	w.urgent = r.distance.Interval > p.settings.MaxDelay
	o.queue(w)
	p.queued[o] = struct{}{}
	p.waiting++
	if next := p.pump(o, now); next != nil {
		p.ask(o, next)
	}
	return w, nil, nil
}

// Observe counts the start of a request that does not wait, and returns what would have happened to
// it: it would have been held for some time, or refused.
func (p *Pacer) Observe(r Request) (hold time.Duration, turn *Turn, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if !p.settings.measure(&r) {
		return 0, nil, nil
	}
	o := p.origins[r.Origin]
	a := p.foresee(o, &r, now, now+min(p.settings.MaxWait, forever))
	if o == nil && r.paced() {
		o = p.remember(r.Origin, now)
	}
	early := o != nil && o.paused(r.Token) > now
	turn = p.start(o, r, now)
	turn.By = a.by
	if early {
		turn.start = never // it does not obey the pause, so its answer neither doubles nor ends it
	}
	if o != nil && p.share(o, r) {
		p.tell(o, false)
	}
	p.spendObserved(turn)
	if err = a.err(); err == nil && a.waits {
		hold = max(a.at-now, 1)
	}
	return hold, turn, err
}

// Started counts a start that does not wait and is not a client's request, such as a fetch of
// robots.txt.
func (p *Pacer) Started(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	o := p.origins[name]
	if o == nil {
		if o = p.remember(name, now); o == nil {
			return
		}
	}
	o.fetched = now
	o.memory = max(o.memory, p.settings.MaxDelay)
	p.tell(o, true)
}

// Close ends the waiting of all requests. Requests that need not wait may still start.
func (p *Pacer) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for o := range p.queued {
		p.drain(o)
	}
}

// drain ends the waiting of all requests for an origin.
func (p *Pacer) drain(o *origin) {
	for w := range o.all() {
		p.remove(w)
		w.end(nil, ErrClosed)
	}
	p.pump(o, p.now())
}

// now returns the time since the epoch. A wall clock that jumps does not change it.
func (p *Pacer) now() time.Duration { return time.Since(p.epoch) }

// start starts a request. O may be nil.
func (p *Pacer) start(o *origin, r Request, now time.Duration) *Turn {
	t := &Turn{Distance: r.distance, pacer: p, request: r, start: now}
	if o != nil {
		t.first = o.started(r, now)
	}
	return t
}

// remove removes a request from its queue.
func (p *Pacer) remove(w *waiter) {
	w.origin.remove(w)
	p.waiting--
}

// leave ends the waiting of a request after its client has left, with an error.
func (p *Pacer) leave(w *waiter, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.ended() {
		return
	}
	p.remove(w)
	w.end(nil, err)
	p.pumpSoon(w.origin, p.now())
}

// refuse ends the waiting of a request with a turn that would come too late.
func (p *Pacer) refuse(w *waiter, after time.Duration, by Source) {
	p.remove(w)
	w.end(nil, &TooLate{After: after, By: by, Distance: w.request.distance})
}
