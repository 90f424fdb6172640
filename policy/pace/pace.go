// Package pace keeps a distance between the starts of two requests to one origin. Start with [New]
// and [Pacer.Wait].
//
// Requests that wait for the same origin take turns by crawler, in order of arrival within one
// crawler. The package knows time and queues only: it sends nothing, and reads no robots.txt.
package pace

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"
)

// A Request is a request that is to start.
type Request struct {
	Origin   string        // scheme, host and port
	Crawler  string        // name; requests take turns by it, and share the places in the queue
	Client   string        // within one crawler, requests do so by this, such as an address
	Token    string        // product token; a pause holds the requests of one token
	Interval time.Duration // to the start before, of any crawler; 0: none
	// Memory is how long other crawlers' intervals reach at this origin: so long the start of this
	// request is remembered, at least.
	Memory time.Duration
	// Fetched is set if the request has waited for a fetch of the origin's robots.txt. That fetch does
	// not delay it.
	Fetched bool
	// OnHold is called if the request has to wait, before it does; nil: nothing is.
	OnHold func()
	// Renew returns Interval and Memory anew. It is called while the request waits and [Pacer.Use] is, and must
	// not block; nil: they stay.
	Renew func() (interval, memory time.Duration)
}

// renew gets the interval and the memory of a request anew.
func (r *Request) renew() {
	if r.Renew != nil {
		r.Interval, r.Memory = r.Renew()
	}
}

// A Source is what delays a request.
type Source string

// The sources.
const (
	ByInterval Source = "interval" // the request's interval, or other crawlers' turns
	ByPause    Source = "back-off" // a pause that the origin has asked for
)

// TooLate is the error for a request with a turn that would come too late, or without a place.
type TooLate struct {
	After time.Duration // its turn would come after this time
	By    Source
	Full  bool // MaxQueue requests wait
}

func (e *TooLate) Error() string {
	if e.Full {
		return "too many requests wait for this origin"
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
	queued   map[*origin]struct{} // those for which requests wait
	waiting  int
	closed   bool
	sweeping bool // a removal is scheduled
	swept    time.Duration
	calls    int // of clock in the background
}

// New returns a Pacer. Its starts are shared with other gates by a clock; nil: they are not.
func New(s Config, clock Clock) *Pacer {
	return &Pacer{epoch: time.Now(), clock: clock, settings: s, origins: map[string]*origin{}, queued: map[*origin]struct{}{}}
}

// Use puts changed settings in force, for requests that wait too. They keep their places, and may wait for as
// long as before.
func (p *Pacer) Use(s Config) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.settings = s
	for _, o := range p.origins {
		o.boundPauses(s.BackOff)
	}
	now := p.now()
	for o := range p.queued {
		for w := range o.all() {
			w.request.renew()
			w.deadline = max(w.deadline, w.arrived+min(s.MaxWait, forever))
		}
		p.pumpSoon(o, now)
	}
}

// A Turn is a request that may start, or has.
type Turn struct {
	Held time.Duration // the time that it has waited
	By   Source        // what it has waited for

	pacer   *Pacer
	request Request
	start   time.Duration
	first   bool // after a pause
}

// unpaced is the turn of requests that delay no other, and have answers that do not matter.
var unpaced Turn

// Wait returns when the request may start. Its errors are [*TooLate], [ErrClosed] and that of ctx.
// The caller must call [Turn.Done] when the origin has answered.
func (p *Pacer) Wait(ctx context.Context, r Request) (*Turn, error) {
	arrived := p.now()
	for {
		turn, err := p.await(ctx, r, arrived)
		if err != nil {
			return nil, err
		}
		switch ok, err := p.mayStart(turn); {
		case err != nil:
			return nil, err
		case ok:
			return turn, nil
		}
		r.renew() // it did not wait for a moment
	}
}

// await returns when the request has its turn by what this gate knows, and by the shared starts.
func (p *Pacer) await(ctx context.Context, r Request, arrived time.Duration) (*Turn, error) {
	w, turn, err := p.enter(r, arrived)
	if w == nil {
		return turn, err
	}
	if r.OnHold != nil && !w.ended() {
		r.OnHold()
	}
	select {
	case <-w.over:
	case <-ctx.Done():
		p.leave(w)
		if w.turn != nil { // it has started at the same moment
			w.turn.Done(Answer{})
		}
		return nil, ctx.Err()
	}
	return w.turn, w.err
}

// enter starts a request at once, or queues it.
func (p *Pacer) enter(r Request, arrived time.Duration) (*waiter, *Turn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	o := p.origins[r.Origin]
	deadline := arrived + min(p.settings.MaxWait, forever)
	after, by, err := p.foresee(o, r, now, deadline)
	if err != nil {
		return nil, nil, err
	}
	if o == nil && (r.Interval > 0 || r.Memory > 0) {
		if o = p.remember(r.Origin, now); o == nil {
			return nil, nil, &TooLate{After: sweepInterval, By: ByInterval, Full: true}
		}
	}
	if shared := p.share(o, r); after == 0 && !shared {
		return nil, p.start(o, r, now), nil
	}
	if after > 0 && p.closed {
		return nil, nil, ErrClosed
	}
	w := &waiter{request: r, by: by, origin: o, arrived: arrived, deadline: deadline, over: make(chan struct{})}
	w.urgent = r.Interval > p.settings.MaxDelay
	if loser, _ := o.place(r, p.settings.MaxQueue); loser != nil {
		p.remove(loser)
		at, by := o.foresee(loser.request, now)
		loser.end(nil, &TooLate{After: max(at-now, 0), By: by, Full: true})
	}
	o.queue(w)
	p.queued[o] = struct{}{}
	p.waiting++
	if next := p.pump(o, now); next != nil {
		p.ask(o, next)
	}
	return w, nil, nil
}

// foresee returns after which time the turn of a request would come, which is an estimate if other
// requests wait. It is an error if that is after the deadline. O may be nil.
func (p *Pacer) foresee(o *origin, r Request, now, deadline time.Duration) (after time.Duration, by Source, err error) {
	if o == nil {
		return 0, by, nil
	}
	at, by := o.foresee(r, now)
	after = max(at-now, 0)
	switch {
	case after == 0 && o.waiting == 0 && !o.probing(r.Token, now):
		return 0, "", nil
	case r.Interval > p.settings.MaxDelay || at > deadline:
		return 0, by, &TooLate{After: after, By: by}
	}
	if _, ok := o.place(r, p.settings.MaxQueue); !ok {
		return 0, by, &TooLate{After: after, By: by, Full: true}
	}
	return max(after, 1), by, nil
}

// Observe counts the start of a request that does not wait, and returns what would have happened to
// it: it would have been held for some time, or refused.
func (p *Pacer) Observe(r Request) (hold time.Duration, turn *Turn, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	o := p.origins[r.Origin]
	hold, by, err := p.foresee(o, r, now, now+min(p.settings.MaxWait, forever))
	if o == nil && (r.Interval > 0 || r.Memory > 0) {
		o = p.remember(r.Origin, now)
	}
	early := o != nil && o.paused(r.Token) > now
	if turn = p.start(o, r, now); o != nil {
		turn.By = by
		if early {
			turn.start = never // it does not obey the pause, so its answer neither doubles nor ends it
		}
		if p.share(o, r) {
			p.tell(o, false)
		}
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
	if o == nil && p.settings.BackOff == 0 {
		return &unpaced
	}
	t := &Turn{pacer: p, request: r, start: now}
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

// leave ends the waiting of a request after its client has left.
func (p *Pacer) leave(w *waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-w.over:
		return
	default:
	}
	p.remove(w)
	w.end(nil, context.Canceled)
	p.pumpSoon(w.origin, p.now())
}

// refuse ends the waiting of a request with a turn that would come too late.
func (p *Pacer) refuse(w *waiter, after time.Duration, by Source) {
	p.remove(w)
	w.end(nil, &TooLate{After: after, By: by})
}

// pump starts the requests of an origin that are due, refuses those that have waited for too long,
// and sets the timer for the next ones. If a start must be reserved first, it returns the request for
// which the caller is to call ask.
func (p *Pacer) pump(o *origin, now time.Duration) (ask *waiter) {
	for o.waiting > 0 {
		w, at := o.next(now)
		shared, reserve := w != nil && p.shares(w.request), false
		if shared {
			at, reserve = o.dueShared(w.request, now)
		}
		if w != nil && at <= now {
			if shared {
				o.shared.slot = nil
			}
			p.remove(w)
			o.passTurn(w.request.Crawler)
			turn := p.start(o, w.request, now)
			if turn.By = w.by; w.by != "" {
				turn.Held = now - w.arrived
			}
			w.end(turn, nil)
			continue
		}
		var asking *waiter
		switch {
		case w == nil:
			p.giveBack(o)
		case shared && at == forever:
			asking = w
		case shared && o.shared.failed == now && at-now > p.longest(w, now):
			p.refuse(w, at-now, ByInterval)
			continue
		default:
			w.by = cmp.Or(w.by, ByInterval)
		}
		deadline, late := o.earliest(asking)
		if deadline <= now {
			p.remove(late)
			at, by := o.foresee(late.request, now)
			late.end(nil, &TooLate{After: max(at-now, 0), By: by})
			continue
		}
		o.wake(min(at, deadline)-now, func() { p.due(o) })
		if reserve {
			return asking
		}
		return nil
	}
	p.giveBack(o)
	o.stop()
	delete(p.queued, o)
	return nil
}

// pumpSoon is pump for callers that can't wait for the clock: the timer's goroutine does.
func (p *Pacer) pumpSoon(o *origin, now time.Duration) {
	if p.pump(o, now) != nil {
		o.wake(0, func() { p.due(o) })
	}
}

// due is called by an origin's timer.
func (p *Pacer) due(o *origin) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w := p.pump(o, p.now()); w != nil {
		p.ask(o, w)
	}
}
