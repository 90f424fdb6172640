//go:build unix

package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"robotsgate/internal/gatetest"
)

// TestFleetPace: the distances of starts at an origin hold over eight gates.
func TestFleetPace(t *testing.T) {
	longWithoutRace(t)
	t.Parallel()
	for _, c := range []struct {
		name, robots, pace string
		distance           time.Duration
		clients            int // of each gate; all of them together wait for less than half of max_wait
		lasts              time.Duration
		killed             bool // the store, for a third of the time
	}{
		{"Crawl-delay", "User-agent: *\nCrawl-delay: 1\n", "{crawl_delay: obey}", time.Second, 1, time.Minute, false},
		{"min_delay", "", "{min_delay: 400ms}", 400 * time.Millisecond, 2, 20 * time.Second, false},
		{"the store is killed and starts again", "", "{min_delay: 1s}", time.Second, 2, 40 * time.Second, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			const number = 8
			redis, origin := gatetest.Redis(t), newTimedOrigin(t, c.robots, 0)
			// A gate that takes a slow store for one that is away keeps a multiple of the distance, and refuses requests.
			fleet := patientFleet
			if c.killed {
				fleet = "fleet: {address: \"ADDRESS\", key_file: \"KEY\", timeout: 1s}\n"
			}
			gates := startFleet(t, number, fleetGateConfig(redis.Address(), newFleetKey(t), fleet+"pace: "+c.pace+"\n"))
			waitFleet(t, gates)
			for _, g := range gates { // so that all know the origin
				g.mustAsk(t, origin.URL+"/robots.txt")
			}
			longest, over := measureStalls(), make(chan struct{})
			errs := make([]error, number)
			var clients sync.WaitGroup
			for i, g := range gates {
				for range c.clients {
					clients.Go(func() {
						for {
							select {
							case <-over:
								return
							default:
							}
							a, err := g.ask(t.Context(), "GoodBot/1.0", origin.URL+"/page")
							if err != nil || a.status != http.StatusOK && !(c.killed && a.status == http.StatusTooManyRequests) {
								errs[i] = fmt.Errorf("%s, %w", a.same(), err)
								return
							}
							if a.status != http.StatusOK {
								time.Sleep(100 * time.Millisecond) // real time: the gates are other processes
							}
						}
					})
				}
			}
			gatetest.Becomes(t, 30*time.Second, "the first request", func() bool { return len(origin.arrived()) > 0 })
			begin := origin.arrived()[0].at
			var lost, back time.Time
			if c.killed {
				time.Sleep(c.lasts / 3) // real time: the gates are other processes
				redis.Kill()
				lost = time.Now()
				time.Sleep(c.lasts / 3) // real time: the gates are other processes
				redis.Restart()
				back = time.Now()
			}
			time.Sleep(time.Until(begin.Add(c.lasts))) // real time: the gates are other processes
			starts := slices.Clone(origin.arrived())
			close(over)
			stall := longest()
			clients.Wait()
			if err := errors.Join(errs...); err != nil {
				t.Error(err)
			}
			closest, during := c.lasts, 0
			for i, s := range starts {
				switch {
				case c.killed && s.at.After(lost) && s.at.Before(back):
					during++
				case i > 0 && (!c.killed || s.at.Before(lost) || starts[i-1].at.After(back.Add(10*time.Second))):
					closest = min(closest, s.at.Sub(starts[i-1].at))
				}
			}
			want := int(c.lasts / c.distance)
			t.Logf("%d starts in %v, the closest two %v apart, %d while the store was away; a goroutine of this process waited for the processor for at most %v", len(starts), c.lasts, closest, during, stall)
			if closest < c.distance*98/100-stall {
				t.Errorf("two starts are %v apart, want %v", closest, c.distance)
			}
			if c.killed {
				// Each gate may start once when it finds itself alone.
				if most := int(c.lasts/3/c.distance) + number; during > most {
					t.Errorf("%d starts while the store was away, want at most %d", during, most)
				}
			} else if len(starts) < want-1-int(stall/c.distance) || len(starts) > want+1 {
				t.Errorf("%d starts, want %d", len(starts), want)
			}
		})
	}
}
