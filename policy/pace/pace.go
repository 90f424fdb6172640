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
	limit    Limit         // by a budget; zero: none
}

// paced reports whether the request keeps an interval to others, or others do to it.
func (r *Request) paced() bool { return r.distance.Interval > 0 || r.memory > 0 }

// tooLate returns the error for the request.
func (r *Request) tooLate(after time.Duration, by Source) *TooLate {
	return &TooLate{After: max(after, 0), By: by, Distance: r.distance}
}

// noPlace returns the error for the request if what it needs can't be remembered.
func (r *Request) noPlace(by Source) *TooLate {
	return &TooLate{After: sweepInterval, By: by, Full: true, Distance: r.distance}
}

// A Source is what delays a request.
type Source string

// The sources.
const (
	ByCrawlDelay Source = "crawl-delay"
	ByMinDelay   Source = "min-delay"
	ByInterval   Source = "interval" // the request's interval by one of these, or other crawlers' turns
	ByPause      Source = "back-off" // a pause that the origin has asked for
	ByBudget     Source = "budget"   // a [Budget], which only refuses
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
	epoch   time.Time       // with a monotonic clock: times are durations since then
	clock   Clock           // that other gates share; nil: there is none
	closing context.Context // ends with Close
	close   context.CancelFunc

	mu       sync.Mutex
	settings Config
	origins  map[string]*origin
	waiting  int                 // requests
	factor   int                 // of intervals: the number of gates if the last call of the clock has failed, else 1
	losses   int                 // how often the clock may have lost its starts
	counts   map[countKey]*count // of limits
	steps    int                 // of all counts
	noted    map[countKey]Kept   // starts for the next call of Kept; nil: there was none
	swept    time.Duration       // when what can't delay a request was removed last
}

// New returns a Pacer. Its starts are shared with other gates by a clock; nil: they are not.
func New(s Config, clock Clock) *Pacer {
	p := &Pacer{
		epoch: time.Now(), clock: clock, settings: s, factor: 1,
		origins: map[string]*origin{}, counts: map[countKey]*count{},
	}
	p.closing, p.close = context.WithCancel(context.Background())
	return p
}

// Use puts changed settings in force, for requests that wait too. They keep their places, and may wait for as long as
// before.
func (p *Pacer) Use(s Config) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.settings = s
	for _, o := range p.origins {
		o.boundPauses(s.BackOff)
		for _, l := range o.lines {
			for _, w := range l.waiters {
				s.measure(&w.request)
			}
		}
		if o.turn != nil {
			o.turn.wake()
		}
		p.pass(o)
	}
}

// Wait returns when the request may start. Its errors are [*TooLate], [ErrClosed] and that of ctx.
// The caller must call [Turn.Done] when the origin has answered. The turn is nil if the request does not count.
func (p *Pacer) Wait(ctx context.Context, r Request) (*Turn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.settings.measure(&r) {
		return nil, nil
	}
	w := p.newWaiter(r)
	if err := p.enter(w); err != nil {
		return nil, err
	}
	defer p.leave(w)
	for {
		turn, until, err := p.advance(w)
		if turn != nil || err != nil {
			return turn, err
		}
		if err := p.sleep(ctx, w, until); err != nil {
			return nil, err
		}
	}
}

// sleep waits until a time, or until the waiter is woken. The lock is released meanwhile.
func (p *Pacer) sleep(ctx context.Context, w *waiter, until time.Duration) error {
	timer := time.NewTimer(until - p.now())
	defer timer.Stop()
	p.mu.Unlock()
	defer p.mu.Lock()
	select {
	case <-p.closing.Done():
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	case <-w.awake:
	case <-timer.C:
	}
	return nil
}

// Observe counts the start of a request that does not wait. Its results are those that Wait would have had, but there
// is a turn also if Wait would have refused the request.
func (p *Pacer) Observe(r Request) (*Turn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.settings.measure(&r) {
		return nil, nil
	}
	w := p.newWaiter(r)
	hold, by, err := p.foresee(w)
	turn := p.start(w)
	turn.Held, turn.By = hold, by
	if o := w.origin; o != nil && o.pause(r.Token).Until > turn.start {
		turn.start = never // it does not obey the pause, so its answer neither doubles nor ends it
	}
	if p.shares(&r) && w.origin != nil {
		p.tell(w.origin)
	}
	turn.Limit, _ = p.spend(&r, true)
	return turn, err
}

// Started counts a start that does not wait and is not a client's request, such as a fetch of
// robots.txt.
func (p *Pacer) Started(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	o := p.remember(name)
	if o == nil {
		return
	}
	o.fetched = p.now()
	if p.clock != nil && o.memory > 0 {
		o.fetch = p.tell(o)
	}
}

// Close ends the waiting of all requests. Requests that need not wait may still start.
func (p *Pacer) Close() { p.close() }

// now returns the time since the epoch. A wall clock that jumps does not change it.
func (p *Pacer) now() time.Duration { return time.Since(p.epoch) }
