package pace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

var usual = Config{CrawlDelay: Obey, MaxDelay: time.Minute, MaxWait: 20 * time.Second, MaxQueue: 1000}

// A schedule records when requests start, in a bubble of synctest.
type schedule struct {
	*Pacer
	begun time.Time
	wg    sync.WaitGroup
	mu    sync.Mutex
	lines []event
}

type event struct {
	at   time.Duration
	text string
}

func newSchedule(s Config) *schedule { return &schedule{Pacer: New(s, nil), begun: time.Now()} }

func (s *schedule) add(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, event{time.Since(s.begun), fmt.Sprintf(format, args...)})
}

// send sends a request in a goroutine of its own, and answers it at once when it starts.
func (s *schedule) send(ctx context.Context, name string, r Request, a Response) {
	s.wg.Go(func() {
		turn, err := s.Wait(ctx, r)
		if late, ok := errors.AsType[*TooLate](err); ok {
			s.add("%s too late by %v, %s, full %v", name, late.After, late.By, late.Full)
			return
		}
		if err != nil {
			s.add("%s %v", name, err)
			return
		}
		s.add("%s", name)
		turn.Done(a)
	})
	synctest.Wait()
}

// wants compares the schedule with lines, in the order of their times and texts.
func (s *schedule) wants(t *testing.T, want ...string) {
	t.Helper()
	s.wg.Wait()
	slices.SortFunc(s.lines, func(a, b event) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.text, b.text)) })
	var got []string
	for _, e := range s.lines {
		got = append(got, fmt.Sprintf("%v %s", e.at, e.text))
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// remembered returns the number of origins that are remembered.
func (s *schedule) remembered() int {
	s.Pacer.mu.Lock()
	defer s.Pacer.mu.Unlock()
	return len(s.origins)
}

var ok = Response{Status: 200}

func to(crawler string, interval time.Duration) Request {
	return Request{Origin: "http://shop.example:80", Crawler: crawler, Token: crawler, CrawlDelay: interval}
}

// TestInterval: requests start in order of arrival, an interval apart.
func TestInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSchedule(usual)
		for i := range 4 {
			s.send(t.Context(), fmt.Sprint("a", i), to("a", 2*time.Second), ok)
		}
		s.wg.Wait()
		time.Sleep(5 * time.Second) // fake clock
		s.send(t.Context(), "later", to("a", 2*time.Second), ok)
		s.wants(t, "0s a0", "2s a1", "4s a2", "6s a3", "11s later")
	})
}

// TestOtherOrigin: an origin does not delay another.
func TestOtherOrigin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSchedule(usual)
		other := to("a", 2*time.Second)
		other.Origin = "https://shop.example:443"
		s.send(t.Context(), "a", to("a", 2*time.Second), ok)
		s.send(t.Context(), "b", other, ok)
		s.wants(t, "0s a", "0s b")
	})
}

// TestTurns: crawlers take turns, however many requests one of them has.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSchedule(usual)
		for i := range 4 {
			s.send(t.Context(), fmt.Sprint("a", i), to("a", time.Second), ok)
		}
		for i := range 2 {
			s.send(t.Context(), fmt.Sprint("b", i), to("b", time.Second), ok)
		}
		s.wants(t, "0s a0", "1s a1", "2s b0", "3s a2", "4s b1", "5s a3")
	})
}

// TestLongInterval: a crawler keeps its turn until its interval has passed, so that a
// short interval, or none, can't starve it.
func TestLongInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSchedule(usual)
		for i := range 4 {
			s.send(t.Context(), fmt.Sprint("short", i), to("short", time.Second), ok)
		}
		s.send(t.Context(), "long", to("long", 5*time.Second), ok)
		s.send(t.Context(), "none", to("none", 0), ok)
		s.wants(t, "0s short0", "1s short1", "6s long", "6s none", "7s short2", "8s short3")
	})
}

// TestUnpacedStartCounts: a request without an interval delays those with one, if other crawlers have
// one at the origin.
func TestUnpacedStartCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSchedule(usual)
		unpaced := to("b", 0)
		unpaced.LongestDelay = 3 * time.Second
		s.send(t.Context(), "b", unpaced, ok)
		s.send(t.Context(), "a", to("a", 3*time.Second), ok)
		s.wants(t, "0s b", "3s a")
	})
}

// TestTooLate: a request with a turn after MaxWait is refused at once, and takes no place.
func TestTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSchedule(Config{CrawlDelay: Obey, MaxDelay: time.Minute, MaxWait: 5 * time.Second, MaxQueue: 1000})
		for i := range 5 {
			s.send(t.Context(), fmt.Sprint("a", i), to("a", 2*time.Second), ok)
		}
		s.wants(t, "0s a0", "0s a3 too late by 6s, interval, full false", "0s a4 too late by 6s, interval, full false", "2s a1", "4s a2")
	})
}

// TestDelayBeyondMax: a request with a longer interval than MaxDelay is not held.
func TestDelayBeyondMax(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSchedule(Config{CrawlDelay: Obey, MaxDelay: 5 * time.Second, MaxWait: time.Hour, MaxQueue: 1000})
		s.send(t.Context(), "first", to("a", time.Minute), ok)
		s.send(t.Context(), "second", to("a", time.Minute), ok)
		time.Sleep(40 * time.Second) // fake clock
		s.send(t.Context(), "third", to("a", time.Minute), ok)
		time.Sleep(20 * time.Second) // fake clock
		s.send(t.Context(), "fourth", to("a", time.Minute), ok)
		s.wants(t, "0s first", "0s second too late by 1m0s, interval, full false", "40s third too late by 20s, interval, full false", "1m0s fourth")
	})
}

// TestFull: no more than MaxQueue requests wait.
func TestFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSchedule(Config{CrawlDelay: Obey, MaxDelay: time.Minute, MaxWait: time.Minute, MaxQueue: 2})
		for i := range 4 {
			s.send(t.Context(), fmt.Sprint("a", i), to("a", time.Second), ok)
		}
		if queues, n := s.Queues(), s.Waiting(); n != 2 || len(queues) != 1 || queues[0] != (Queue{Origin: "http://shop.example:80", Waiting: 2}) {
			t.Errorf("%d requests wait: %v", n, queues)
		}
		s.wants(t, "0s a0", "0s a3 too late by 3s, interval, full true", "1s a1", "2s a2")
		if queues, n := s.Queues(), s.Waiting(); n != 0 || len(queues) != 0 {
			t.Errorf("%d requests wait at the end: %v", n, queues)
		}
	})
}

// TestHeldNoLonger: a request that others have delayed is refused when its turn would come after MaxWait.
func TestHeldNoLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSchedule(Config{CrawlDelay: Obey, MaxDelay: time.Minute, MaxWait: 5 * time.Second, MaxQueue: 1000})
		for i := range 3 {
			s.send(t.Context(), fmt.Sprint("a", i), to("a", 2*time.Second), ok)
		}
		for _, name := range []string{"b", "c"} {
			s.send(t.Context(), name, to(name, time.Second), ok)
		}
		s.wants(t, "0s a0", "2s a1", "3s b", "4s a2 too late by 2s, interval, full false", "4s c")
	})
}

// TestClientLeaves: a client that leaves costs no turn.
func TestClientLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSchedule(usual)
		ctx, leave := context.WithCancel(t.Context())
		s.send(t.Context(), "a", to("a", 2*time.Second), ok)
		s.send(ctx, "gone", to("a", 2*time.Second), ok)
		s.send(t.Context(), "b", to("b", 2*time.Second), ok)
		leave()
		s.wants(t, "0s a", "0s gone context canceled", "2s b")
	})
}

// TestClientLeavesAtTurn: if a client leaves at the moment of its turn, the turn is not lost: the request starts, or the next
// one does.
func TestClientLeavesAtTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSchedule(usual)
		s.send(t.Context(), "first", to("a", 2*time.Second), ok)
		ctx, leave := context.WithTimeout(t.Context(), 2*time.Second)
		defer leave()
		left := make(chan error)
		go func() {
			_, err := s.Wait(ctx, to("a", 2*time.Second))
			left <- err
		}()
		synctest.Wait()
		next := make(chan time.Duration)
		go func() {
			if _, err := s.Wait(t.Context(), to("a", 2*time.Second)); err != nil {
				t.Error(err)
			}
			next <- time.Since(s.begun)
		}()
		want := 2 * time.Second
		if <-left == nil {
			want = 4 * time.Second
		}
		if got := <-next; got != want {
			t.Errorf("the next request starts after %v, want %v", got, want)
		}
	})
}

// TestFetch: a fetch of robots.txt delays requests, but not those that have waited for it.
func TestFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSchedule(usual)
		waited := to("a", 2*time.Second)
		waited.Fetched = true
		s.Started(waited.Origin)
		time.Sleep(time.Second) // fake clock
		s.send(t.Context(), "page", waited, ok)
		s.send(t.Context(), "next", waited, ok)
		s.wg.Wait()
		time.Sleep(10 * time.Second) // fake clock
		s.Started(waited.Origin)
		s.send(t.Context(), "later", to("a", 2*time.Second), ok)
		s.wants(t, "1s page", "3s next", "15s later")
	})
}

// TestObserve: a request of report mode starts at once, counts, and learns what would have happened.
func TestObserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSchedule(Config{CrawlDelay: Obey, MaxDelay: time.Minute, MaxWait: 5 * time.Second, MaxQueue: 1000})
		for i, want := range []time.Duration{0, 2 * time.Second} {
			if turn, err := s.Observe(to("a", 2*time.Second)); err != nil || turn.Held != want {
				t.Errorf("request %d: %v, %v, want to be held for %v", i, turn, err, want)
			}
		}
		if turn, err := s.Observe(to("a", 30*time.Second)); err == nil || turn == nil {
			t.Error("the third would not have been refused")
		}
		s.send(t.Context(), "a", to("a", 2*time.Second), ok)
		s.wants(t, "2s a")
	})
}

// TestClose: requests that wait are told, and those that need not wait still start.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSchedule(usual)
		for i := range 3 {
			s.send(t.Context(), fmt.Sprint("a", i), to("a", 2*time.Second), ok)
		}
		s.Close()
		s.wg.Wait()
		s.send(t.Context(), "held", to("a", 2*time.Second), ok)
		s.send(t.Context(), "free", Request{Origin: "http://other.example:80", CrawlDelay: time.Second}, ok)
		s.wants(t, "0s a0", "0s a1 the gate is ending", "0s a2 the gate is ending", "0s free", "0s held the gate is ending")
	})
}

// TestUse: changed settings are in force for requests that wait. They keep their places, and may wait for as long as
// before.
func TestUse(t *testing.T) {
	for name, test := range map[string]struct {
		interval time.Duration // after a second
		settings Config
		want     []string
	}{
		"shorter": {1500 * time.Millisecond, usual, []string{"0s a0", "1.5s a1", "3s a2", "4.5s new"}},
		"none":    {0, usual, []string{"0s a0", "1s a1", "1s a2", "1s new"}},
		"longer":  {6 * time.Second, usual, []string{"0s a0", "6s a1", "12s a2", "18s new"}},
		"a shorter wait": {2 * time.Second, Config{CrawlDelay: Obey, MaxDelay: time.Minute, MaxWait: time.Second, MaxQueue: 1},
			[]string{"0s a0", "1s new too late by 5s, interval, full false", "2s a1", "4s a2"}},
		"longer than it waits": {15 * time.Second, usual, []string{"0s a0", "1s new too late by 44s, interval, full false", "15s a1", "15s a2 too late by 15s, interval, full false"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSchedule(usual)
				r := to("a", 4*time.Second)
				for i := range 3 {
					s.send(t.Context(), fmt.Sprint("a", i), r, ok)
				}
				time.Sleep(time.Second) // fake clock
				test.settings.CrawlDelay, test.settings.MinDelay = Announce, test.interval
				s.Use(test.settings)
				synctest.Wait()
				s.send(t.Context(), "new", r, ok)
				s.wants(t, test.want...)
			})
		})
	}
}

// TestUseBackOff: a shorter BackOff shortens the pauses for which requests wait; without one there are none.
func TestUseBackOff(t *testing.T) {
	for backOff, want := range map[time.Duration]string{30 * time.Second: "30s a", 5 * time.Second: "10s a", 0: "10s a", time.Hour: "40s a"} {
		synctest.Test(t, func(t *testing.T) {
			s := newSchedule(patient)
			s.send(t.Context(), "busy", to("a", 0), busy("40"))
			s.send(t.Context(), "a", to("a", 0), ok)
			time.Sleep(10 * time.Second) // fake clock
			changed := patient
			changed.BackOff = backOff
			s.Use(changed)
			s.wants(t, "0s busy", want)
		})
	}
}

// TestForgotten: an origin is forgotten when it can't delay a request any more, not before.
func TestForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSchedule(usual)
		s.send(t.Context(), "a", to("a", 100*time.Second), ok)
		for i, want := range []int{2, 1} {
			s.wg.Wait()
			time.Sleep(95 * time.Second) // fake clock
			s.send(t.Context(), "other", Request{Origin: fmt.Sprintf("http://other%d.example:80", i), CrawlDelay: time.Second}, ok)
			if n := s.remembered(); n != want {
				t.Errorf("after %v %d origins are remembered, want %d", time.Since(s.begun), n, want)
			}
		}
	})
}

// TestManyOrigins: the number of origins is bounded, and a request that would need a further one is
// refused.
func TestManyOrigins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSchedule(usual)
		for i := range 250_000 {
			if _, err := s.Wait(t.Context(), Request{Origin: fmt.Sprint("http://", i), CrawlDelay: time.Minute}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.Wait(t.Context(), to("a", time.Second)); err == nil {
			t.Error("a further origin is not refused")
		}
		if _, err := s.Wait(t.Context(), to("a", 0)); err != nil {
			t.Errorf("an origin without a delay: %v", err)
		}
		time.Sleep(2 * time.Minute) // fake clock
		if _, err := s.Wait(t.Context(), to("a", time.Second)); err != nil {
			t.Errorf("when the others are idle: %v", err)
		}
	})
}

// TestDistance: the larger of Crawl-delay and min_delay is kept, if Crawl-delay is obeyed. It is only reported
// otherwise, and then a shorter min_delay is kept silently.
func TestDistance(t *testing.T) {
	const s = time.Second
	for name, test := range map[string]struct {
		config        Config
		asked         time.Duration
		want          Distance
		remembers, on bool
	}{
		"obeyed":             {Config{CrawlDelay: Obey}, 2 * s, Distance{Interval: 2 * s, By: ByCrawlDelay}, true, true},
		"obeyed, longer":     {Config{CrawlDelay: Obey, MinDelay: s}, 2 * s, Distance{Interval: 2 * s, By: ByCrawlDelay}, true, true},
		"obeyed, equal":      {Config{CrawlDelay: Obey, MinDelay: 2 * s}, 2 * s, Distance{Interval: 2 * s, By: ByCrawlDelay}, true, true},
		"obeyed, shorter":    {Config{CrawlDelay: Obey, MinDelay: 3 * s}, 2 * s, Distance{Interval: 3 * s, By: ByMinDelay}, true, true},
		"obeyed, none":       {Config{CrawlDelay: Obey}, 0, Distance{}, true, true},
		"announced":          {Config{CrawlDelay: Announce}, 2 * s, Distance{}, false, false},
		"announced, longer":  {Config{MinDelay: s}, 2 * s, Distance{Interval: s, By: ByMinDelay}, false, true},
		"announced, shorter": {Config{MinDelay: 3 * s}, 2 * s, Distance{Interval: 3 * s, By: ByMinDelay}, false, true},
		"only a minimum":     {Config{MinDelay: 3 * s}, 0, Distance{Interval: 3 * s, By: ByMinDelay}, false, true},
	} {
		r := Request{CrawlDelay: test.asked, LongestDelay: time.Minute}
		if counts := test.config.measure(&r); !counts || r.distance != test.want || (r.memory > 0) != test.remembers || test.config.On() != test.on {
			t.Errorf("%s: got %+v, %t, want %+v", name, r.distance, r.memory > 0, test.want)
		}
	}
}
