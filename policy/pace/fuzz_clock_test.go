package pace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// FuzzClock sends requests of two crawlers to one origin through three gates that share a clock. Clients
// leave, settings change, and the clock is away, slow or emptied, as the input says. No two starts of a
// gate may be closer than the interval of the second, nor two of different gates while the clock is up
// and knows all starts. Each request ends once, no reservation is lost, and no request waits if nothing
// delays it.
func FuzzClock(f *testing.F) {
	f.Add([]byte{0x04, 0x14, 0x24, 0x05, 0x15, 0x25, 0x88, 0x04, 0x14, 0x24})
	f.Add([]byte{0x0c, 0x4c, 0x18, 0x58, 0xa8, 0x0c, 0x14, 0x44, 0x04})
	f.Add([]byte{0x04, 0x08, 0xc8, 0x14, 0x18, 0x95, 0xd0, 0x24, 0x04, 0xf8, 0x9f, 0x04})
	f.Add([]byte{0xdf, 0x04, 0x14, 0x44, 0x54, 0x24, 0x64, 0xe0, 0x04, 0x84})
	f.Add([]byte{0xe8, 0x0c, 0xe9, 0x1c, 0xf0, 0x08, 0xf1, 0x18, 0xc3, 0x84, 0x94})
	f.Fuzz(func(t *testing.T, input []byte) {
		if len(input) > 150 {
			input = input[:150]
		}
		synctest.Test(t, func(t *testing.T) { runClockFuzz(t, input) })
	})
}

// A fuzzClock notes what becomes of the starts that it reserves.
type fuzzClock struct {
	*testClock
	open   map[time.Duration]bool // reserved for a request, and not given back
	failed bool                   // a reservation has failed
}

func (c *fuzzClock) Reserve(r Reservation) (Grant, error) {
	g, err := c.testClock.Reserve(r)
	c.set(func() {
		c.failed = c.failed || err != nil
		delete(c.open, r.Returned)
		if tells := r.Interval == 0 && r.Longest == 0 && r.Since < 0; g.Start != 0 && !tells {
			c.open[g.Start] = true
		}
	})
	return g, err
}

// A fuzzFleet is a run of FuzzClock.
type fuzzFleet struct {
	clock    *fuzzClock
	pacers   [3]*Pacer
	settings Config

	mu         sync.Mutex
	wg         sync.WaitGroup
	starts     []*fuzzRequest // of all gates
	all        []*fuzzRequest
	gates      map[*fuzzRequest]int
	uncounted  bool // there were starts that did not wait for the clock, or a slow clock
	incomplete bool // the clock did not know all starts at some time
	last       time.Time
}

const fuzzMemory = 7 * time.Second

func runClockFuzz(t *testing.T, input []byte) {
	f := &fuzzFleet{
		clock:    &fuzzClock{testClock: newTestClock(), open: map[time.Duration]bool{}},
		settings: Config{CrawlDelay: Obey, MaxDelay: 10 * time.Second, MaxWait: 30 * time.Second, MaxQueue: 20},
		gates:    map[*fuzzRequest]int{},
	}
	f.clock.gates = len(f.pacers)
	for i := range f.pacers {
		f.pacers[i] = New(f.settings, f.clock)
	}
	for i, b := range input {
		if b>>6 == 3 {
			f.disturb(b)
		} else {
			f.request(t, i, b)
		}
		synctest.Wait()
	}
	f.wg.Wait()
	f.check(t)
	f.clock.set(func() { f.clock.err, f.clock.delay = nil, 0 })
	for gate, p := range f.pacers {
		time.Sleep(fuzzMemory) // fake clock
		if f.incomplete || f.clock.failed {
			time.Sleep(40 * time.Second) // fake clock: what could not be given back is over
		}
		if turn, err := p.Wait(t.Context(), to("last", fuzzMemory)); err != nil || turn.Held != 0 {
			t.Errorf("gate %d: the last request was held for %v, %v", gate, turn, err)
		}
		p.Close()
	}
	time.Sleep(time.Hour) // fake clock: all is forgotten
	synctest.Wait()
}

// disturb changes something.
func (f *fuzzFleet) disturb(b byte) {
	p := f.pacers[b&3%3]
	switch b >> 3 & 7 {
	case 0:
		f.settings.MaxWait, f.settings.MaxQueue = time.Duration(b&7+1)*4*time.Second, int(b&7)+1
		p.Use(f.settings)
	case 1:
		f.clock.set(func() { f.clock.err = errAway })
	case 2:
		f.clock.set(func() { f.clock.err = nil })
	case 3:
		f.clock.set(func() { f.clock.delay = time.Duration(b&7) * 14 * time.Millisecond })
		f.uncounted = true
	case 4:
		f.clock.set(func() { clear(f.clock.starts) })
		f.incomplete = true
	case 5:
		p.Started("http://shop.example:80")
		f.uncounted = true
	case 6:
		p.Observe(to("observed", time.Second))
		f.uncounted = true
	case 7: // as after the clock was emptied
		for _, r := range p.Recent() {
			f.clock.Reserve(r)
		}
		f.uncounted = true // what was reserved is reserved anew: the old start is not given back
		f.incomplete = true
	}
}

// request sends a request.
func (f *fuzzFleet) request(t *testing.T, i int, b byte) {
	gate, crawler := int(b>>4&3%3), fmt.Sprint(b&1)
	if b>>6 == 2 { // time passes
		time.Sleep(time.Duration(b&63) * 200 * time.Millisecond) // fake clock
	}
	r := &fuzzRequest{Request: to(crawler, []time.Duration{0, 500 * time.Millisecond, 2 * time.Second, fuzzMemory}[b>>2&3]), arrived: time.Now()}
	r.LongestDelay, r.Fetched = fuzzMemory, b&2 != 0
	f.all = append(f.all, r)
	f.gates[r] = gate
	free := f.free()
	ctx, cancel := context.WithCancel(t.Context())
	if b>>6 == 1 { // the client leaves, not at the moment of a start
		time.AfterFunc(time.Duration(i)*300*time.Millisecond+time.Duration(i+1)*1777*time.Nanosecond, cancel)
	}
	f.wg.Go(func() {
		defer cancel()
		turn, err := f.pacers[gate].Wait(ctx, r.Request)
		f.mu.Lock()
		defer f.mu.Unlock()
		r.ends++
		if r.err = err; err != nil {
			return
		}
		turn.Done(Response{Status: 200})
		r.started = time.Now()
		f.last = r.started
		f.starts = append(f.starts, r)
		if free && !r.started.Equal(r.arrived) {
			t.Errorf("nothing delays request %d, but it was held for %v", i, turn.Held)
		}
	})
}

// free reports whether a request that arrives now must start at once.
func (f *fuzzFleet) free() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.clock.mu.Lock()
	defer f.clock.mu.Unlock()
	if f.uncounted || f.incomplete || f.clock.failed || f.clock.err != nil || time.Since(f.last) <= fuzzMemory {
		return false
	}
	return !slices.ContainsFunc(f.pacers[:], func(p *Pacer) bool { return p.Waiting() > 0 })
}

// check looks at the requests when all are over.
func (f *fuzzFleet) check(t *testing.T) {
	time.Sleep(time.Second) // fake clock: starts are given back
	synctest.Wait()
	for i, r := range f.all {
		late, isLate := errors.AsType[*TooLate](r.err)
		if r.ends != 1 || r.err != nil && !isLate && !errors.Is(r.err, context.Canceled) || isLate && late.After < 0 {
			t.Errorf("request %d ended %d times, with %v", i, r.ends, r.err)
		}
	}
	slices.SortStableFunc(f.starts, func(a, b *fuzzRequest) int { return a.started.Compare(b.started) })
	for gate, p := range f.pacers {
		checkIntervals(t, slices.DeleteFunc(slices.Clone(f.starts), func(r *fuzzRequest) bool { return f.gates[r] != gate }), 0)
		p.mu.Lock()
		for _, o := range p.origins {
			if o.waiting > 0 || p.waiting > 0 || o.turn != nil {
				t.Errorf("gate %d: %d requests wait, or one has the turn", gate, o.waiting)
			}
		}
		p.mu.Unlock()
	}
	if f.incomplete || f.clock.failed {
		return
	}
	if len(f.clock.open) > len(f.starts) {
		t.Errorf("%d starts are reserved, but only %d requests have started", len(f.clock.open), len(f.starts))
	}
	slack, starts := time.Duration(0), f.starts
	if f.uncounted { // half a round trip, and as late as a reserved start is used
		slack = 50*time.Millisecond + fuzzMemory/50
		// A request without an interval may start with the one before.
		starts = slices.DeleteFunc(slices.Clone(starts), func(r *fuzzRequest) bool { return r.CrawlDelay == 0 })
	}
	checkIntervals(t, starts, slack)
}
