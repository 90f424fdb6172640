package fleet

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/policy/pace"
)

// pacedGates are gates that share a store, in a bubble of synctest.
type pacedGates struct {
	server *memoryServer
	begun  time.Time
	gates  []*pacedGate
	wg     sync.WaitGroup

	mu     sync.Mutex
	away   bool
	starts []pacedStart // in order
}

type pacedGate struct {
	*pace.Pacer
	clock *paceClock
}

type pacedStart struct {
	at   time.Duration
	gate int
	name string
}

// newPacedGates returns gates that are connected with their store. A call takes 300 µs.
func newPacedGates(t *testing.T, n int) *pacedGates {
	t.Helper()
	return newPacedGatesWith(t, n, 20*time.Minute)
}

func newPacedGatesWith(t *testing.T, n int, maxWait time.Duration) *pacedGates {
	t.Helper()
	s, err := newSealer(testKey, "robotsgate")
	if err != nil {
		t.Fatal(err)
	}
	p := &pacedGates{server: newMemoryServer(), begun: time.Now()}
	for range n {
		c := newPaceClock(s, p.call, func() int { return n }, func(string, error) {})
		pacer := pace.New(pace.Config{CrawlDelay: pace.Obey, MaxDelay: time.Minute, MaxWait: maxWait, MaxQueue: 1000}, c)
		p.gates = append(p.gates, &pacedGate{pacer, c})
		c.back(t.Context(), pacer.Recent)
	}
	if time.Since(p.begun) > 0 {
		t.Error("gates that have started nothing wait")
	}
	return p
}

// call is as the method of a link.
func (p *pacedGates) call(ctx context.Context, f func(context.Context, server) error) error {
	p.mu.Lock()
	away := p.away
	p.mu.Unlock()
	if away {
		return errAway
	}
	ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	time.Sleep(100 * time.Microsecond)       // fake clock
	defer time.Sleep(200 * time.Microsecond) // fake clock
	if err := f(ctx, p.server); err != nil {
		return fmt.Errorf("%w: %w", errAway, err)
	}
	return nil
}

// lose makes the store one that can't be reached, without its keys.
func (p *pacedGates) lose() {
	p.mu.Lock()
	p.away = true
	p.mu.Unlock()
	p.server.flush()
	for _, g := range p.gates {
		g.clock.away()
	}
}

// find makes the store one that can be reached again. Each gate notices it a while after the one
// before.
func (p *pacedGates) find(t *testing.T, apart time.Duration) {
	p.mu.Lock()
	p.away = false
	p.mu.Unlock()
	for i, g := range p.gates {
		p.wg.Go(func() {
			time.Sleep(time.Duration(i) * apart) // fake clock
			g.clock.back(t.Context(), g.Recent)
		})
	}
}

// request sends a request through a gate, and returns when it has started.
func (p *pacedGates) request(t *testing.T, gate int, name string, interval time.Duration) error {
	turn, err := p.gates[gate].Wait(t.Context(), pace.Request{Origin: "https://shop.example:443", Crawler: name, Token: name, CrawlDelay: interval})
	if err != nil {
		return err
	}
	turn.Done(pace.Answer{Status: 200})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.starts = append(p.starts, pacedStart{time.Since(p.begun), gate, name})
	return nil
}

// send sends a request through a gate, in the background.
func (p *pacedGates) send(t *testing.T, gate int, name string, interval time.Duration) {
	p.wg.Go(func() {
		if err := p.request(t, gate, name, interval); err != nil && !errors.Is(err, pace.ErrClosed) {
			t.Errorf("gate %d: %s: %v", gate, name, err)
		}
	})
	synctest.Wait()
}

// closest returns the shortest distance of two starts.
func (p *pacedGates) closest() time.Duration {
	shortest := time.Hour
	for i, s := range p.starts[1:] {
		shortest = min(shortest, s.at-p.starts[i].at)
	}
	return shortest
}

// close ends all gates, and waits for all requests.
func (p *pacedGates) close() {
	for _, g := range p.gates {
		g.Close()
	}
	p.wg.Wait()
	time.Sleep(time.Second) // fake clock: starts that were reserved are given back
}

// TestFleetPace: 8 gates share one pace, while requests wait at each of them at all times.
func TestFleetPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const gates, clients = 8, 5
		p := newPacedGates(t, gates)
		for gate := range gates {
			for range clients {
				p.wg.Go(func() {
					for p.request(t, gate, "bot", time.Second) == nil {
					}
				})
			}
		}
		time.Sleep(time.Minute) // fake clock
		p.close()
		if n := len(p.starts); n < 59 || n > 61 {
			t.Errorf("%d starts in a minute, want 60", n)
		}
		if d := p.closest(); d < 980*time.Millisecond {
			t.Errorf("two starts are only %v apart", d)
		}
		var share [gates]int
		for _, s := range p.starts {
			share[s.gate]++
		}
		for gate, n := range share {
			if n < 60/gates-2 || n > 60/gates+2 {
				t.Errorf("gate %d has %d of %d starts", gate, n, len(p.starts))
			}
		}
		t.Logf("%d starts, the closest two %v apart, by gate %v, %d calls", len(p.starts), p.closest(), share, p.server.count())
	})
}

// TestFleetShare: a gate with one request that waits has as many starts as one with 50.
func TestFleetShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacedGates(t, 2)
		for i := range 51 {
			gate := min(i, 1)
			p.wg.Go(func() {
				for p.request(t, gate, "bot", time.Second) == nil {
				}
			})
		}
		time.Sleep(time.Minute) // fake clock
		p.close()
		var share [2]int
		for _, s := range p.starts {
			share[s.gate]++
		}
		if share[0] < 28 || share[1] < 28 {
			t.Errorf("the gates have %v starts, want as many each", share)
		}
		t.Logf("%v starts", share)
	})
}

// TestClockNames: the store sees no origin, and keys with the prefix only.
func TestClockNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacedGates(t, 1)
		p.send(t, 0, "a", time.Second)
		p.wg.Wait()
		if len(p.server.clocks) != 1 {
			t.Errorf("the store has %d clocks", len(p.server.clocks))
		}
		for name := range p.server.clocks {
			if strings.Contains(name, "shop") || !strings.HasPrefix(name, "robotsgate:") {
				t.Errorf("a key is %q", name)
			}
		}
	})
}

// TestClockFlushed: when the store is emptied, a gate's own last start still counts.
func TestClockFlushed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacedGates(t, 2)
		p.send(t, 0, "first", 4*time.Second)
		time.Sleep(time.Second) // fake clock
		p.server.flush()
		p.send(t, 0, "second", 4*time.Second)
		time.Sleep(time.Millisecond) // fake clock
		p.send(t, 1, "third", 4*time.Second)
		p.wg.Wait()
		if d := p.closest(); d < 4*time.Second {
			t.Errorf("starts are only %v apart: %v", d, p.starts)
		}
	})
}

// TestClockBack: when an emptied store is back, the distance to the starts before and during its
// absence holds over all gates, and soon the pace is the usual one.
func TestClockBack(t *testing.T) {
	for _, test := range []struct {
		lost  time.Duration // the store is away for this time
		found time.Duration // and then this long before the request of another gate
	}{
		{0, 10 * time.Millisecond},
		{time.Second, 10 * time.Millisecond},
		{time.Second, 500 * time.Millisecond},
		{time.Second, caution},
		{time.Second, caution + 10*time.Millisecond},
		{4 * time.Second, 5 * time.Second},
	} {
		t.Run(fmt.Sprintf("%v and %v", test.lost, test.found), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPacedGates(t, 3)
				p.send(t, 0, "before", 10*time.Second)
				time.Sleep(time.Second) // fake clock
				p.send(t, 0, "reserved before", 10*time.Second)
				time.Sleep(time.Second) // fake clock
				p.lose()
				time.Sleep(test.lost) // fake clock
				p.find(t, time.Millisecond)
				time.Sleep(test.found) // fake clock
				p.send(t, 2, "other", 10*time.Second)
				p.wg.Wait()
				if d := p.closest(); d < 10*time.Second {
					t.Errorf("starts are only %v apart: %v", d, p.starts)
				}
				before := time.Since(p.begun)
				p.send(t, 1, "last", 10*time.Second)
				p.wg.Wait()
				if d := time.Since(p.begun) - before; d > 11*time.Second {
					t.Errorf("the last waits for %v", d)
				}
			})
		})
	}
}

// TestCaution: when caution ends, each gate has connected again and announced itself.
func TestCaution(t *testing.T) {
	if least := longestRetry + minDialTimeout + usual.announce; caution < least {
		t.Errorf("caution is %v, but gates may take %v", caution, least)
	}
}

// TestClockCautious: after the store was away, intervals are multiplied by the number of gates for a
// while, since other gates may not have told the store of their starts yet.
func TestClockCautious(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacedGates(t, 3)
		p.lose()
		p.find(t, 0)
		time.Sleep(time.Second) // fake clock
		for i := range 5 {
			p.send(t, 0, fmt.Sprint("a", i), time.Second)
		}
		p.wg.Wait()
		for i, want := range []time.Duration{1, 4, 7, 10, 11} {
			if got := p.starts[i].at.Round(10 * time.Millisecond); got != want*time.Second {
				t.Errorf("start %d was after %v, want %v s", i, got, int64(want))
			}
		}
	})
}

// TestClockCautiousManyGates: in a fleet of many gates the distance is longer than a request may wait. Another gate's
// request is refused then, and may come again when the caution is over.
func TestClockCautiousManyGates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacedGatesWith(t, 50, 10*time.Second)
		p.lose()
		p.find(t, 0)
		time.Sleep(time.Second) // fake clock
		p.send(t, 0, "first", 2*time.Second)
		time.Sleep(time.Millisecond) // fake clock: until the first has its turn
		err := p.request(t, 1, "second", 2*time.Second)
		late, ok := errors.AsType[*pace.TooLate](err)
		if !ok || late.After < 10*time.Second || late.After > 11*time.Second {
			t.Fatalf("got %v, want a refusal for some 10 s", err)
		}
		time.Sleep(late.After) // fake clock
		p.send(t, 1, "again", 2*time.Second)
		p.wg.Wait()
		if got := p.starts[1]; got.name != "again" || got.at > 13*time.Second {
			t.Errorf("got %+v", p.starts)
		}
	})
}

// TestClockCautionEnds: a pace is cautious no longer than for a while after the last loss of the store, also if it
// is lost and found again meanwhile, and the gates seen by then are fewer.
func TestClockCautionEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacedGates(t, 3)
		c := p.gates[0].clock
		for range 3 {
			p.lose()
			c.gates = func() int { return 1 }
			time.Sleep(time.Second) // fake clock
			p.find(t, 0)
			time.Sleep(caution / 2) // fake clock
			if state, factor := c.now(); state != clockCautious || factor != 3 {
				t.Fatalf("while other gates may not be back: state %v, factor %d", state, factor)
			}
		}
		time.Sleep(caution/2 + time.Second) // fake clock
		if state, factor := c.now(); state != clockReady || factor != 1 || c.Alone() != 1 {
			t.Errorf("at the end: state %v, factor %d, %d gates", state, factor, c.Alone())
		}
		begun := time.Now()
		for i := range 3 {
			p.send(t, 0, fmt.Sprint("a", i), time.Second)
		}
		p.wg.Wait()
		if took := time.Since(begun).Round(10 * time.Millisecond); took != 2*time.Second {
			t.Errorf("three starts took %v, want 2 s", took)
		}
	})
}

// TestClockAway: while the store is away, and also if it hangs or can't be written, each gate goes on
// by its own starts, at the interval times the number of gates.
func TestClockAway(t *testing.T) {
	for name, f := range map[string]faults{
		"hangs":     {hang: true},
		"no answer": {lose: true},
		"read-only": {readOnly: true},
		"fails":     {err: errors.New("LOADING")},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPacedGates(t, 3)
				p.server.set(f)
				for i := range 3 {
					p.send(t, 0, fmt.Sprint("a", i), 2*time.Second)
				}
				p.wg.Wait()
				if d := p.closest(); d < 6*time.Second || d > 6500*time.Millisecond {
					t.Errorf("starts are %v apart", d)
				}
			})
		})
	}
}

// TestClockTells: a gate with very many starts tells the store of the newest ones, some at once, and
// stops if it is lost again.
func TestClockTells(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacedGates(t, 1)
		c := p.gates[0].clock
		c.away()
		var all []pace.Reservation
		for i := range 1600 {
			all = append(all, pace.Reservation{Key: fmt.Sprint("http://", i), Since: time.Second, Longest: -1, Memory: time.Minute})
		}
		begun := time.Now()
		c.back(t.Context(), func() []pace.Reservation { return all })
		if took, want := time.Since(begun), caution+100*300*time.Microsecond; len(p.server.clocks) != len(all) || took != want {
			t.Errorf("%d clocks after %v, want %d after %v", len(p.server.clocks), took, len(all), want)
		}
		p.lose()
		calls := p.server.count()
		time.AfterFunc(time.Second, c.away)
		c.back(t.Context(), func() []pace.Reservation { return all })
		if c.state == clockReady || p.server.count() > calls {
			t.Errorf("the clock is ready although the store is lost")
		}
	})
}

// TestServerClockJumps: when the store's clock is set forward, each gate may start once too early. When it is set
// back no start is too early: requests wait, or are refused, until the clock has caught up; while that is farther
// away than requests may wait, gates go by their own starts. Then the pace is the usual one.
func TestServerClockJumps(t *testing.T) {
	const gates, clients, maxWait = 3, 2, 20 * time.Second
	for _, test := range []struct {
		jump    time.Duration
		early   int           // starts that are less than the interval after the one before, at most
		refused bool          // requests may be
		pause   time.Duration // between two starts, at most
	}{
		{5 * time.Minute, gates, false, time.Second},
		{30 * time.Second, gates, false, time.Second},
		{-2 * time.Second, 0, false, 3 * time.Second},
		{-15 * time.Second, 0, true, 16 * time.Second},
		{-5 * time.Minute, 0, true, maxWait + time.Minute + 2*time.Second}, // see plausible in policy/pace
	} {
		t.Run(test.jump.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPacedGatesWith(t, gates, maxWait)
				var refused atomic.Int32
				for gate := range gates {
					for range clients {
						p.wg.Go(func() {
							for {
								err := p.request(t, gate, "bot", time.Second)
								if errors.Is(err, pace.ErrClosed) {
									return
								}
								if err != nil {
									refused.Add(1)
									time.Sleep(time.Second) // fake clock
								}
							}
						})
					}
				}
				time.Sleep(20 * time.Second) // fake clock
				p.server.mu.Lock()
				p.server.offset = test.jump
				p.server.mu.Unlock()
				time.Sleep(10 * time.Minute) // fake clock
				p.close()
				early, last, pause := 0, 0, time.Duration(0)
				for i, s := range p.starts[1:] {
					distance := s.at - p.starts[i].at
					if distance < 980*time.Millisecond {
						early++
					}
					pause = max(pause, distance)
					if s.at > 8*time.Minute {
						last++
					}
				}
				if early > test.early || pause > test.pause || refused.Load() > 0 && !test.refused {
					t.Errorf("%d starts were too early, the longest pause was %v, %d requests were refused", early, pause, refused.Load())
				}
				if last < 138 || last > 142 {
					t.Errorf("%d starts in the last 140 s", last)
				}
			})
		})
	}
}
