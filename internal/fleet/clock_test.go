package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/policy/pace"
)

// pacedGates are gates with one crawler each that pace by a store in memory.
type pacedGates struct {
	clocks []*paceClock
	pacers []*pace.Pacer
	begun  time.Time

	mu     sync.Mutex
	away   bool
	starts map[string]*pace.Starts
	at     []time.Duration // of all starts
	all    sync.WaitGroup
}

func newPacedGates(t *testing.T, n int) *pacedGates {
	p := &pacedGates{begun: time.Now(), starts: map[string]*pace.Starts{}}
	for range n {
		c := &paceClock{reserve: p.reserve, gates: func() int { return n }}
		config := pace.Default()
		config.CrawlDelay, config.MaxWait = pace.Obey, time.Minute
		p.clocks, p.pacers = append(p.clocks, c), append(p.pacers, pace.New(config, c))
		c.back(t.Context(), func() []pace.Reservation { return nil })
	}
	t.Cleanup(func() {
		for _, pacer := range p.pacers {
			pacer.Close()
		}
	})
	return p
}

func (p *pacedGates) reserve(_ context.Context, r pace.Reservation) (pace.Grant, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.away {
		return pace.Grant{}, errAway
	}
	if p.starts[r.Key] == nil {
		p.starts[r.Key] = new(pace.Starts)
	}
	return p.starts[r.Key].Reserve(r, time.Since(p.begun)+time.Hour), nil
}

// lose makes the store go away; it is empty when it is back.
func (p *pacedGates) lose() {
	p.mu.Lock()
	p.away, p.starts = true, map[string]*pace.Starts{}
	p.mu.Unlock()
	for _, c := range p.clocks {
		c.away()
	}
}

func (p *pacedGates) find(t *testing.T) {
	p.mu.Lock()
	p.away = false
	p.mu.Unlock()
	for i, c := range p.clocks {
		go c.back(t.Context(), p.pacers[i].Recent)
	}
	synctest.Wait()
}

// send sends a request through a gate.
func (p *pacedGates) send(t *testing.T, gate int, interval time.Duration) {
	p.all.Go(func() {
		turn, err := p.pacers[gate].Wait(t.Context(), pace.Request{Origin: "http://a.example", Crawler: "bot", CrawlDelay: interval, LongestDelay: interval})
		if err != nil {
			t.Error(err)
			return
		}
		p.mu.Lock()
		p.at = append(p.at, time.Since(p.begun))
		p.mu.Unlock()
		turn.Done(pace.Response{})
	})
}

// distances returns the times between the starts.
func (p *pacedGates) distances() (all []time.Duration) {
	p.all.Wait()
	for i := range p.at[1:] {
		all = append(all, (p.at[i+1] - p.at[i]).Round(10*time.Millisecond))
	}
	return all
}

// TestClock: the interval holds over three gates, also when the store is lost, empty, and back; while it is away each
// gate keeps the interval times the number of gates.
func TestClock(t *testing.T) {
	const interval = 2 * time.Second
	for name, c := range map[string]struct {
		run  func(*testing.T, *pacedGates)
		want []time.Duration
	}{
		"together": {func(t *testing.T, p *pacedGates) {
			for gate := range 3 {
				p.send(t, gate, interval)
			}
		}, []time.Duration{interval, interval}},
		"away": {func(t *testing.T, p *pacedGates) {
			p.lose()
			for range 3 {
				p.send(t, 0, interval)
			}
		}, []time.Duration{3 * interval, 3 * interval}},
		"back, and empty": {func(t *testing.T, p *pacedGates) {
			p.send(t, 0, interval)
			time.Sleep(time.Second) // fake clock
			p.lose()
			p.find(t)
			p.send(t, 1, interval) // the store knows the first start again, and the gate is cautious
		}, []time.Duration{3 * interval}},
		"back for a while": {func(t *testing.T, p *pacedGates) {
			p.send(t, 0, interval)
			p.lose()
			p.find(t)
			time.Sleep(caution + time.Second) // fake clock
			p.send(t, 1, interval)
			p.send(t, 2, interval)
		}, []time.Duration{caution + time.Second, interval}},
		"lost again while it is cautious": {func(t *testing.T, p *pacedGates) {
			p.lose()
			p.find(t)
			time.Sleep(caution / 2) // fake clock
			p.lose()
			p.find(t)
			time.Sleep(caution/2 + time.Second) // fake clock
			p.send(t, 0, interval)
			p.all.Wait()
			p.send(t, 0, interval)
		}, []time.Duration{3 * interval}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPacedGates(t, 3)
				c.run(t, p)
				if got := p.distances(); !slices.Equal(got, c.want) {
					t.Errorf("got %v, want %v", got, c.want)
				}
				time.Sleep(time.Minute) // fake clock: until the pacers remember nothing
			})
		})
	}
}

// TestClockCautiousManyGates: in a fleet of many gates the multiplied distance is longer than a request may wait. Another
// gate's request is refused, for no longer than the caution lasts.
func TestClockCautiousManyGates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacedGates(t, 50)
		p.lose()
		p.find(t)
		p.send(t, 0, 2*time.Second)
		time.Sleep(time.Millisecond) // fake clock: until the first has its turn
		_, err := p.pacers[1].Wait(t.Context(), pace.Request{Origin: "http://a.example", CrawlDelay: 2 * time.Second, LongestDelay: 2 * time.Second})
		if late, ok := errors.AsType[*pace.TooLate](err); !ok || late.After > time.Minute+time.Second {
			t.Errorf("got %v", err)
		}
		p.all.Wait()
		time.Sleep(time.Hour) // fake clock: until the pacers remember nothing
	})
}

// TestLink: a store is away until a check succeeds, and again from the first call that fails on; then no call
// waits, and checks follow with growing pauses.
func TestLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := testOptions("")
		link := newLink(100*time.Millisecond, l.Log)
		var mu sync.Mutex
		checks, fault, events := 0, errors.New("connection refused"), []string(nil) // guarded by mu
		event := func(name string) func() {
			return func() {
				mu.Lock()
				defer mu.Unlock()
				events = append(events, name)
			}
		}
		fails := func(with error) {
			mu.Lock()
			defer mu.Unlock()
			fault = with
		}
		link.onUp, link.onDown = event("up"), event("down")
		ctx, stop := context.WithCancel(t.Context())
		go link.run(ctx, func(context.Context) error {
			mu.Lock()
			defer mu.Unlock()
			checks++
			return fault
		}, event("tried"))
		call := func(f func(context.Context) error) error { return link.call(t.Context(), f) }
		works := func(context.Context) error { return nil }
		hangs := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		time.Sleep(time.Minute) // fake clock
		err := call(works)
		mu.Lock()
		if err != errAway || checks < 20 || checks > 70 {
			t.Errorf("%v; %d checks in a minute", err, checks)
		}
		mu.Unlock()
		fails(nil)
		time.Sleep(2 * longestRetry) // fake clock
		if err := call(works); err != nil {
			t.Error(err)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if err := link.call(gone, hangs); !errors.Is(err, context.Canceled) || !link.up() {
			t.Errorf("the caller has left: %v", err)
		}
		fails(errors.New("read-only"))
		var all sync.WaitGroup
		begin := time.Now()
		for range 100 {
			all.Go(func() { _ = call(hangs) })
		}
		all.Wait()
		if took := time.Since(begin); took != 100*time.Millisecond {
			t.Errorf("calls of a store that hangs took %v", took)
		}
		if err := call(works); err != errAway {
			t.Errorf("after the loss: %v", err)
		}
		fails(nil)
		time.Sleep(2 * longestRetry) // fake clock
		if since, err := link.state(); err != nil || time.Since(since) > 2*longestRetry {
			t.Errorf("the state: %v, %v", since, err)
		}
		fails(errors.New("OOM"))
		time.Sleep(2 * checkInterval) // fake clock
		mu.Lock()
		defer mu.Unlock()
		if got, want := fmt.Sprint(events), "[tried up down up down]"; got != want || link.up() {
			t.Errorf("got %s, want %s", got, want)
		}
		stop()
	})
}
