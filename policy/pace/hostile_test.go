package pace

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"robotsgate/internal/gatetest"
)

// TestLongManyLeave: clients open 10,000 requests and leave. Afterwards nothing waits, the memory is
// returned, and the next request has its turn.
func TestLongManyLeave(t *testing.T) {
	requests := gatetest.Size(2000, 10_000)
	synctest.Test(t, func(t *testing.T) {
		p := New(Config{CrawlDelay: Obey, MaxDelay: time.Hour, MaxWait: 1e6 * time.Hour, MaxQueue: requests, BackOff: time.Minute}, nil)
		r := to("a", time.Hour)
		if _, err := p.Wait(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		before := uint64(0)
		for range 3 { // so that the runtime has the memory of so many goroutines
			before = max(before, manyLeave(t, p, r, requests))
		}
		// What is not returned adds up, and the last rounds show it. One of them may be measured when the runtime has more.
		after := uint64(math.MaxUint64)
		for round := range 6 {
			if used := manyLeave(t, p, r, requests); round >= 3 {
				after = min(after, used)
			}
		}
		if after > before+1<<20 {
			t.Errorf("%d bytes are not returned", after-before)
		}
		turn, err := p.Wait(t.Context(), r)
		if err != nil || turn.Held != time.Hour {
			t.Errorf("the next request: %+v, %v", turn, err)
		}
		p.Close()
	})
}

// manyLeave lets n requests wait and leave, and returns the memory in use afterwards.
func manyLeave(t *testing.T, p *Pacer, r Request, n int) uint64 {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			other := r
			other.Crawler = fmt.Sprint("crawler", i%100)
			if _, err := p.Wait(ctx, other); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	}
	synctest.Wait()
	if waiting := p.Waiting(); waiting != n {
		t.Errorf("%d requests wait, want %d", waiting, n)
	}
	r.Crawler = "crawler0"
	if _, err := p.Wait(t.Context(), r); err == nil || !strings.Contains(err.Error(), "too many") {
		t.Errorf("one more: %v", err)
	}
	leave()
	all.Wait()
	if waiting, queues := p.Waiting(), p.Queues(); waiting != 0 || len(queues) != 0 {
		t.Errorf("%d requests wait, in %v", waiting, queues)
	}
	if o := p.origins[r.Origin]; o.waiting != 0 || len(o.lines) != 0 || o.timer != nil {
		t.Errorf("the origin has %d requests, %d lines and the timer %v", o.waiting, len(o.lines), o.timer)
	}
	return heap()
}

// heap returns the memory in use, with the stacks of goroutines.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

// TestHostileIntervals: intervals and settings of any size delay or refuse requests, but never for less
// than no time, and no queue gets stuck.
func TestHostileIntervals(t *testing.T) {
	const never = 1<<63 - 1
	for _, interval := range []time.Duration{-1, -time.Hour, -never - 1, 1, time.Nanosecond * 999, 1e9 * time.Second, never} {
		for _, settings := range []Config{usual, {CrawlDelay: Obey},
			{CrawlDelay: Obey, MaxDelay: never, MaxWait: never, MaxQueue: 1 << 62, BackOff: never},
			{CrawlDelay: Obey, MaxDelay: -1, MaxWait: -1, MaxQueue: -1, BackOff: -1}} {
			synctest.Test(t, func(t *testing.T) {
				p := New(settings, nil)
				ctx, leave := context.WithCancel(t.Context())
				var all sync.WaitGroup
				for i := range 5 {
					all.Go(func() {
						turn, err := p.Wait(ctx, to(fmt.Sprint(i%2), interval))
						late, isLate := errors.AsType[*TooLate](err)
						switch {
						case isLate && late.After < 0, err == nil && turn.Held < 0:
							t.Errorf("interval %v, %+v: %v, %+v", interval, settings, err, turn)
						case err != nil && !isLate && !errors.Is(err, context.Canceled):
							t.Error(err)
						case err == nil:
							turn.Done(Answer{Status: 429, RetryAfter: "99999999999999999999"})
						}
					})
				}
				time.Sleep(time.Second) // fake clock
				leave()
				all.Wait()
				if n := p.Waiting(); n != 0 {
					t.Errorf("interval %v, %+v: %d requests wait", interval, settings, n)
				}
				p.Close()
				time.Sleep(time.Hour) // fake clock: the sweep
			})
		}
	}
}

// TestAlwaysBusyOneToken: an origin that answers 429 to every request holds the requests of a crawler
// for longer and longer, up to BackOff; one at a time reaches it.
func TestAlwaysBusyOneToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(Config{CrawlDelay: Obey, MaxDelay: time.Minute, MaxWait: 1e6 * time.Hour, MaxQueue: 1000, BackOff: time.Minute}, nil)
		var mu sync.Mutex
		var starts []time.Time
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				turn, err := p.Wait(t.Context(), to("a", 0))
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				starts = append(starts, time.Now())
				mu.Unlock()
				turn.Done(busy(""))
			})
			synctest.Wait()
		}
		all.Wait()
		for i := 1; i < len(starts); i++ {
			if want, got := min(5*time.Second<<min(i-1, 10), time.Minute), starts[i].Sub(starts[i-1]); got != want {
				t.Errorf("request %d started %v after the one before, want %v", i, got, want)
			}
		}
	})
}

// TestMonotonic: times are differences of the monotonic clock, so that a wall clock that jumps delays
// and hastens no request. Since returns such a difference if the earlier time has a monotonic reading.
func TestMonotonic(t *testing.T) {
	p := New(usual, nil)
	if p.epoch == p.epoch.Round(0) { // which removes the reading
		t.Error("the epoch has no monotonic reading")
	}
	jumped := p.epoch.Round(0).Add(-24 * time.Hour) // what the epoch looks like after the wall clock was set forward by a day
	setWall(&p.epoch, jumped)
	if !p.epoch.Round(0).Equal(jumped) {
		t.Fatalf("the wall time of the epoch is %v, want %v", p.epoch, jumped)
	}
	if now := p.now(); now < 0 || now > time.Hour {
		t.Errorf("after the jump the time is %v", now)
	}
}

// setWall changes the wall time of t, but not its monotonic reading: both are in the first two words.
func setWall(t *time.Time, wall time.Time) {
	seconds := (*[2]uint64)(unsafe.Pointer(t))
	seconds[0] += uint64(wall.Unix()-t.Unix()) << 30
}
