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

// A testClock is a Clock in memory, with faults.
type testClock struct {
	begun time.Time

	mu     sync.Mutex
	starts map[string]*Starts
	pauses map[string]Pause
	gates  int
	delay  time.Duration // of each answer, half of it before the reservation
	saving time.Duration // from the reading of a pause until others see what was changed
	err    error         // of each call
	calls  int
	wrong  Grant // replaces answers, if it is not the zero value
}

func newTestClock() *testClock {
	return &testClock{begun: time.Now().Add(-time.Hour), starts: map[string]*Starts{}, pauses: map[string]Pause{}, gates: 1}
}

func (c *testClock) Alone() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gates
}

func (c *testClock) set(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

func (c *testClock) Reserve(r Reservation) (g Grant, err error) {
	var delay time.Duration
	c.set(func() {
		c.calls++
		delay = c.delay
	})
	if delay > 0 {
		time.Sleep(delay / 2)             // fake clock
		defer time.Sleep(delay - delay/2) // fake clock
	}
	c.set(func() {
		if err = c.err; err != nil {
			return
		}
		starts := c.starts[r.Key]
		if starts == nil {
			starts = new(Starts)
			c.starts[r.Key] = starts
		}
		g = starts.Reserve(r, time.Since(c.begun))
		if c.wrong != (Grant{}) {
			g = c.wrong
		}
	})
	return g, err
}

func (c *testClock) Pause(origin, token string, change PauseChange) (err error) {
	var delay time.Duration
	c.set(func() {
		c.calls++
		delay = c.delay
	})
	time.Sleep(delay) // fake clock
	c.set(func() {
		if err = c.err; err != nil {
			return
		}
		s := c.pauses[origin+" "+token]
		if change(&s, time.Since(c.begun)) == 0 {
			return
		}
		c.mu.Unlock()
		time.Sleep(c.saving) // fake clock
		c.mu.Lock()
		c.pauses[origin+" "+token] = s
	})
	return err
}

// gates are Pacers that share a clock, and one schedule.
type gates struct {
	*schedule
	clock  *testClock
	pacers []*Pacer
}

func newGates(n int, s Config) *gates {
	g := &gates{schedule: newSchedule(s), clock: newTestClock()}
	g.clock.gates = n
	for range n {
		g.pacers = append(g.pacers, New(s, g.clock))
	}
	return g
}

// send sends a request through one of the gates.
func (g *gates) send(ctx context.Context, gate int, name string, r Request) {
	g.sendFor(ctx, gate, name, r, ok)
}

// sendFor is send with the answer of the origin.
func (g *gates) sendFor(ctx context.Context, gate int, name string, r Request, a Response) {
	pacer := g.Pacer
	g.Pacer = g.pacers[gate]
	defer func() { g.Pacer = pacer }()
	g.schedule.send(ctx, name, r, a)
}

// closed checks that all requests are over, and that the clock has no start that is not used.
func (g *gates) closed(t *testing.T) {
	t.Helper()
	g.wg.Wait()
	synctest.Wait()
	for i, p := range g.pacers {
		p.mu.Lock()
		if p.waiting > 0 {
			t.Errorf("gate %d: %d requests wait", i, p.waiting)
		}
		for _, o := range p.origins {
			if o.turn != nil {
				t.Errorf("gate %d: a request has the turn still", i)
			}
		}
		p.mu.Unlock()
	}
}

// TestShared: the interval holds over all gates, in order of asking.
func TestShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGates(2, usual)
		for i := range 3 {
			g.send(t.Context(), 0, fmt.Sprint("a", i), to("a", 2*time.Second))
		}
		g.send(t.Context(), 1, "b0", to("b", 2*time.Second))
		g.send(t.Context(), 1, "b1", to("b", 2*time.Second))
		g.wants(t, "0s a0", "2s a1", "4s b0", "6s a2", "8s b1")
		g.closed(t)
	})
}

// TestSharedCalls: a start costs one call of the clock, and an origin without a pace none. A request
// that starts at once was not held.
func TestSharedCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGates(1, usual)
		g.clock.delay = time.Millisecond
		turn, err := g.pacers[0].Wait(t.Context(), to("a", time.Second))
		if err != nil || turn.Held != 0 || turn.By != "" {
			t.Errorf("held for %v by %q, %v", turn.Held, turn.By, err)
		}
		for i := range 9 {
			g.send(t.Context(), 0, fmt.Sprint("a", i), to("a", time.Second))
		}
		g.wg.Wait()
		if g.clock.calls != 10 {
			t.Errorf("10 starts have cost %d calls", g.clock.calls)
		}
		g.send(t.Context(), 0, "unpaced", to("b", 0))
		if g.clock.calls != 10 {
			t.Error("the clock is asked for an unpaced origin")
		}
		g.closed(t)
	})
}

// TestSharedLeave: when a client leaves, the next request uses the start that was reserved; if there is
// none, it is given back.
func TestSharedLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGates(2, usual)
		ctx, leave := context.WithCancel(t.Context())
		g.send(t.Context(), 0, "first", to("a", 2*time.Second))
		g.send(ctx, 0, "gone", to("a", 2*time.Second))
		g.send(t.Context(), 0, "next", to("b", 2*time.Second))
		leave()
		synctest.Wait()
		g.send(t.Context(), 1, "other", to("a", 2*time.Second))
		time.Sleep(6 * time.Second) // fake clock
		ctx, leave = context.WithCancel(t.Context())
		g.send(t.Context(), 0, "second", to("a", 2*time.Second))
		g.send(ctx, 0, "gone too", to("a", 2*time.Second))
		leave()
		synctest.Wait()
		g.send(t.Context(), 1, "later", to("a", 2*time.Second))
		g.wants(t, "0s first", "0s gone context canceled", "2s next", "4s other", "6s gone too context canceled", "6s second", "8s later")
		g.closed(t)
	})
}

// TestSharedOtherInterval: a start that was reserved for another interval is given back, and another
// reserved.
func TestSharedOtherInterval(t *testing.T) {
	for _, test := range []struct {
		gone, next time.Duration
		want       string
	}{
		{2 * time.Second, 5 * time.Second, "5s next"},
		{5 * time.Second, 2 * time.Second, "2s next"},
	} {
		synctest.Test(t, func(t *testing.T) {
			g := newGates(2, usual)
			ctx, leave := context.WithCancel(t.Context())
			g.send(t.Context(), 0, "first", to("a", time.Second))
			g.send(ctx, 0, "gone", to("a", test.gone))
			g.send(t.Context(), 0, "next", to("b", test.next))
			leave()
			g.wants(t, "0s first", "0s gone context canceled", test.want)
			g.closed(t)
		})
	}
}

// TestSharedTooLate: a start that is farther away than a request may wait is not reserved, and the
// request is refused at once.
func TestSharedTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGates(2, Config{CrawlDelay: Obey, MaxDelay: 5 * time.Second, MaxWait: 5 * time.Second, MaxQueue: 10})
		g.send(t.Context(), 0, "first", to("a", 3*time.Second))
		g.send(t.Context(), 0, "second", to("a", 3*time.Second))
		g.send(t.Context(), 1, "refused", to("a", 3*time.Second))
		time.Sleep(4 * time.Second) // fake clock
		g.send(t.Context(), 1, "long", to("a", 6*time.Second))
		g.wants(t, "0s first", "0s refused too late by 6s, interval, full false", "3s second", "4s long too late by 5s, interval, full false")
		g.closed(t)
	})
}

var errAway = errors.New("away")

// TestAlone: while the clock is away, gates start by their own starts, at a multiple of the interval.
func TestAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGates(3, usual)
		g.clock.err = errAway
		for i := range 3 {
			g.send(t.Context(), 0, fmt.Sprint("a", i), to("a", 2*time.Second))
		}
		g.send(t.Context(), 0, "late", to("a", 10*time.Second))
		g.send(t.Context(), 1, "b", to("b", 2*time.Second))
		time.Sleep(13 * time.Second) // fake clock: the clock is back
		g.clock.set(func() { g.clock.err = nil })
		for i := range 3 {
			g.send(t.Context(), 0, fmt.Sprint("c", i), to("a", 2*time.Second))
		}
		g.wants(t, "0s a0", "0s b", "0s late too late by 42s, interval, full false", "6s a1", "12s a2", "14s c0", "16s c1", "18s c2")
		g.closed(t)
	})
}

// TestEmptied: a clock that was emptied does not forget the last start of the gate that asks.
func TestEmptied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGates(2, usual)
		g.send(t.Context(), 0, "first", to("a", 4*time.Second))
		time.Sleep(time.Second) // fake clock
		clear(g.clock.starts)
		g.send(t.Context(), 0, "second", to("a", 4*time.Second))
		g.wants(t, "0s first", "4s second")
	})
}

// TestRecent: when a clock is back, and empty, the recent starts can be noted in it, and reserved ones
// are reserved anew.
func TestRecent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGates(2, usual)
		g.send(t.Context(), 0, "first", to("a", 4*time.Second))
		g.send(t.Context(), 0, "second", to("a", 4*time.Second))
		time.Sleep(time.Second) // fake clock
		clear(g.clock.starts)
		recent := g.pacers[0].Recent()
		if want := []Reservation{{Key: "http://shop.example:80", Since: time.Second, Longest: -1, Memory: 4 * time.Second}}; !slices.Equal(recent, want) {
			t.Fatalf("got %v, want %v", recent, want)
		}
		synctest.Wait() // the second reserves anew
		for _, r := range recent {
			g.clock.Reserve(r)
		}
		g.send(t.Context(), 1, "other", to("b", 4*time.Second))
		g.wants(t, "0s first", "4s second", "8s other")
		time.Sleep(4 * time.Second) // fake clock
		if recent := g.pacers[0].Recent(); len(recent) > 0 {
			t.Errorf("a start after its memory is still recent: %v", recent)
		}
		g.closed(t)
	})
}

// TestSharedFetch: a fetch of robots.txt delays the requests of all gates, but not the request that has
// waited for it.
func TestSharedFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGates(2, usual)
		waited := to("a", 2*time.Second)
		waited.Fetched = true
		g.pacers[0].Started(waited.Origin) // nothing is known of the origin
		g.send(t.Context(), 0, "page", waited)
		g.send(t.Context(), 1, "other", to("b", 2*time.Second))
		time.Sleep(10 * time.Second) // fake clock
		g.pacers[0].Started(waited.Origin)
		synctest.Wait()
		g.send(t.Context(), 0, "page again", waited)
		g.send(t.Context(), 1, "other again", to("b", 2*time.Second))
		time.Sleep(10 * time.Second) // fake clock
		g.pacers[0].Started(waited.Origin)
		synctest.Wait()
		g.send(t.Context(), 1, "delayed", to("b", 2*time.Second))
		g.wants(t, "0s page", "2s other", "10s page again", "12s other again", "22s delayed")
		g.closed(t)
	})
}

// TestSharedObserve: a request in report mode waits for no start, only until the clock knows of it, and delays the requests
// of all gates.
func TestSharedObserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGates(2, usual)
		g.clock.delay = 100 * time.Millisecond
		if turn, err := g.pacers[0].Observe(to("a", 2*time.Second)); err != nil || turn.Held != 0 {
			t.Errorf("would have been held: %v, %v", turn, err)
		}
		if g.since() != 100*time.Millisecond {
			t.Error("the request has waited for more than a round trip")
		}
		time.Sleep(time.Second) // fake clock
		g.send(t.Context(), 1, "other", to("b", 2*time.Second))
		g.wants(t, "2.1s other")
		g.closed(t)
	})
}

func (s *schedule) since() time.Duration { return time.Since(s.begun) }

// TestSharedClose: requests that wait end when the gate does, also while a reservation is under way, and
// what they have reserved is given back.
func TestSharedClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGates(2, usual)
		g.clock.delay = 100 * time.Millisecond
		for i := range 3 {
			g.send(t.Context(), 0, fmt.Sprint("a", i), to("a", 2*time.Second))
		}
		time.Sleep(120 * time.Millisecond) // fake clock: the second reservation is under way
		g.pacers[0].Use(Config{CrawlDelay: Obey})
		g.pacers[0].Close()
		synctest.Wait()
		time.Sleep(880 * time.Millisecond) // fake clock
		g.send(t.Context(), 0, "held", to("a", 2*time.Second))
		g.send(t.Context(), 1, "other", to("b", 2*time.Second))
		time.Sleep(4 * time.Second) // fake clock
		g.send(t.Context(), 0, "due", to("a", 2*time.Second))
		g.wants(t, "100ms a0", "120ms a2 the gate is ending", "200ms a1 the gate is ending", "1s held too late by 1.1s, interval, full false", "2.2s other", "5.1s due")
		g.closed(t)
	})
}

// TestWrongAnswers: a clock that gives impossible answers counts as away.
func TestWrongAnswers(t *testing.T) {
	for name, wrong := range map[string]Grant{
		"in the past":       {Wait: -time.Hour, Start: 1},
		"far away":          {Wait: time.Hour, Start: 1},
		"far away, refused": {Wait: time.Hour},
		"refused":           {Left: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGates(1, usual)
				g.clock.wrong = wrong
				for i := range 3 {
					g.send(t.Context(), 0, fmt.Sprint("a", i), to("a", 2*time.Second))
				}
				g.wants(t, "0s a0", "2s a1", "4s a2")
				g.closed(t)
			})
		})
	}
}

// TestSharedDeadline: the way of the clock's answer does not make a reserved start too late.
func TestSharedDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGates(1, Config{CrawlDelay: Obey, MaxDelay: time.Minute, MaxWait: 2 * time.Second, MaxQueue: 10})
		g.clock.delay = 100 * time.Millisecond
		g.send(t.Context(), 0, "first", to("a", 2*time.Second))
		g.wg.Wait()
		g.send(t.Context(), 0, "second", to("a", 2*time.Second))
		g.wants(t, "100ms first", "2.2s second")
		g.closed(t)
	})
}

// TestStopped: a gate that was stopped when its reserved start came reserves another.
func TestStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGates(2, usual)
		g.send(t.Context(), 0, "first", to("a", 2*time.Second))
		g.send(t.Context(), 0, "second", to("a", 2*time.Second))
		g.send(t.Context(), 1, "other", to("b", 2*time.Second))
		p := g.pacers[0]
		p.mu.Lock()
		for _, o := range p.origins {
			o.turn.slot.late = 0
		}
		p.mu.Unlock()
		g.wants(t, "0s first", "4s other", "6s second")
		g.closed(t)
	})
}

// TestSharedUse: a longer interval is in force for a request that has reserved a start already.
func TestSharedUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGates(2, usual)
		for i := range 2 {
			g.send(t.Context(), 0, fmt.Sprint("a", i), to("a", 2*time.Second))
		}
		time.Sleep(time.Second) // fake clock
		changed := usual
		changed.CrawlDelay, changed.MinDelay = Announce, 10*time.Second
		g.pacers[0].Use(changed)
		synctest.Wait()
		g.send(t.Context(), 1, "b", to("b", 2*time.Second))
		g.wants(t, "0s a0", "10s a1", "12s b")
		g.closed(t)
	})
}

// A request whose turn is now has not waited, however long the clock takes to say so.
func TestSharedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := newTestClock()
		clock.delay = 20 * time.Millisecond
		p := New(Config{CrawlDelay: Obey, MaxDelay: time.Minute, MaxWait: time.Minute, MaxQueue: 10}, clock)
		p.Started("https://a.example") // the fetch of its robots.txt, which does not delay the first request
		for _, want := range []struct {
			by   Source
			held time.Duration
		}{{"", 0}, {ByInterval, 5 * time.Second}} {
			turn, err := p.Wait(t.Context(), Request{Origin: "https://a.example", CrawlDelay: 5 * time.Second, Fetched: want.held == 0})
			if err != nil {
				t.Fatal(err)
			}
			if turn.By != want.by || turn.Held.Round(time.Second) != want.held || want.held == 0 && turn.Held != 0 {
				t.Errorf("got %v by %q, want %v by %q", turn.Held, turn.By, want.held, want.by)
			}
			turn.Done(Response{})
		}
	})
}
