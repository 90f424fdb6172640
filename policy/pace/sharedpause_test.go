package pace

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestSharedPause: a pause that one gate has been asked for holds at four, for the same token only. Then one
// request goes first, and those of all gates follow when its answer is there.
func TestSharedPause(t *testing.T) {
	for _, interval := range []time.Duration{0, 10 * time.Millisecond} {
		t.Run(interval.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGates(4, patient)
				g.sendFor(t.Context(), 0, "busy", to("a", interval), busy("10"))
				var starts []time.Duration
				for gate, p := range g.pacers {
					for range 3 {
						g.wg.Go(func() {
							turn, err := p.Wait(t.Context(), to("a", interval))
							if err != nil || turn.By != ByPause {
								t.Errorf("gate %d: %+v, %v", gate, turn, err)
								return
							}
							g.mu.Lock()
							starts = append(starts, time.Since(g.begun))
							g.mu.Unlock()
							time.Sleep(2 * time.Second) // fake clock: the answer takes 2 s
							turn.Done(ok)
						})
					}
					synctest.Wait()
				}
				if interval == 0 {
					g.send(t.Context(), 3, "other token", to("b", 0))
				}
				g.wg.Wait()
				slices.Sort(starts)
				if len(starts) != 12 || starts[0] != 10*time.Second {
					t.Fatalf("starts at %v, want the first at 10 s", starts)
				}
				if starts[1] < 12*time.Second || starts[11] > 12*time.Second+2*firstPoll+12*interval {
					t.Errorf("starts at %v, want all others soon after 12 s", starts)
				}
				for _, e := range g.lines {
					if e.at > 0 {
						t.Errorf("%s started at %v", e.text, e.at)
					}
				}
			})
		})
	}
}

// TestSharedSeries: pauses double over gates, and an answer to another gate ends the series.
func TestSharedSeries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGates(3, patient)
		for i, a := range []Response{busy(""), busy(""), {Status: 503}, ok, busy(""), busy("")} {
			g.sendFor(t.Context(), i%3, fmt.Sprint("r", i), to("a", 0), a)
			g.wg.Wait()
		}
		g.wants(t, "0s r0", "5s r1", "15s r2", "35s r3", "35s r4", "40s r5")
	})
}

// TestSharedInFlight: answers to requests that had started before a pause began, at any gate, do not double
// it, and do not end it.
func TestSharedInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGates(4, patient)
		var turns []*Turn
		for _, p := range g.pacers {
			turn, err := p.Wait(t.Context(), to("a", 0))
			if err != nil {
				t.Fatal(err)
			}
			turns = append(turns, turn)
		}
		time.Sleep(time.Second) // fake clock
		for i, a := range []Response{busy(""), busy(""), busy("8"), ok} {
			turns[i].Done(a)
		}
		g.sendFor(t.Context(), 3, "first", to("a", 0), busy(""))
		g.wg.Wait()
		g.send(t.Context(), 0, "second", to("a", 0))
		g.wants(t, "9s first", "19s second")
	})
}

// TestSharedMeanwhile: requests of other gates that start after a pause began, and before the store has it,
// neither end it nor double it.
func TestSharedMeanwhile(t *testing.T) {
	for name, test := range map[string]struct {
		answer Response
		want   []string
	}{
		"ended":   {ok, []string{"0s busy", "5s learned", "15s follows"}},
		"doubled": {busy(""), []string{"0s busy", "5.15s learned", "15.15s follows"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGates(3, patient)
				g.clock.saving = 100 * time.Millisecond
				g.sendFor(t.Context(), 0, "busy", to("a", 0), busy(""))
				time.Sleep(50 * time.Millisecond) // fake clock
				meanwhile, err := g.pacers[1].Wait(t.Context(), to("a", 0))
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(100 * time.Millisecond) // fake clock
				g.clock.set(func() { g.clock.saving = 0 })
				g.sendFor(t.Context(), 1, "learned", to("a", 0), busy(""))
				meanwhile.Done(test.answer)
				g.wg.Wait()
				g.send(t.Context(), 2, "follows", to("a", 0))
				g.wants(t, test.want...)
			})
		})
	}
}

// TestSharedReported: in report mode too, the answer to a request after a pause ends the pause for all gates.
func TestSharedReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGates(2, patient)
		g.sendFor(t.Context(), 0, "busy", to("a", 0), busy(""))
		time.Sleep(6 * time.Second)                  // fake clock
		turn, err := g.pacers[0].Observe(to("a", 0)) // a gate that knows of the pause
		if err != nil {
			t.Fatal(err)
		}
		turn.Done(ok)
		g.sendFor(t.Context(), 1, "busy again", to("a", 0), busy(""))
		g.wg.Wait()
		g.send(t.Context(), 0, "follows", to("a", 0))
		g.wants(t, "0s busy", "6s busy again", "11s follows")
	})
}

// TestSharedFirstLost: if the gate that has sent the first request after a pause dies, another sends one after
// firstWait; if that request only fails, at once.
func TestSharedFirstLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGates(3, patient)
		g.sendFor(t.Context(), 0, "busy", to("a", 0), busy("5"))
		g.wg.Wait()
		if _, err := g.pacers[1].Wait(t.Context(), to("a", 0)); err != nil { // and is never done
			t.Fatal(err)
		}
		g.sendFor(t.Context(), 2, "fails", to("a", 0), Response{})
		g.wg.Wait()
		g.send(t.Context(), 0, "follows", to("a", 0))
		g.wants(t, "0s busy", "10s fails", "10s follows")
	})
}

// TestSharedPauseTooLong: a request with a pause of another gate that is longer than it may wait is refused at
// once, and no gate pauses for longer than its own BackOff.
func TestSharedPauseTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGates(2, patient)
		hasty := patient
		hasty.MaxWait, hasty.BackOff = 5*time.Second, 30*time.Second
		g.pacers[1].Use(hasty)
		g.sendFor(t.Context(), 0, "busy", to("a", 0), busy("45"))
		g.send(t.Context(), 1, "a", to("a", 0))
		g.wants(t, "0s a too late by 30s, back-off, full false", "0s busy")
	})
}

// TestSharedPauseLost: while the clock is away, each gate goes on with its own pauses, and with those that it
// has learned. A gate that has learned none starts. When the clock is there again, empty, it learns them.
func TestSharedPauseLost(t *testing.T) {
	for name, lose := range map[string]func(c *testClock){
		"away":    func(c *testClock) { c.err = errors.New("away") },
		"emptied": func(c *testClock) { clear(c.pauses) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGates(3, patient)
				g.sendFor(t.Context(), 0, "busy", to("a", 0), busy("10"))
				g.send(t.Context(), 1, "learned", to("a", 0))
				time.Sleep(time.Second) // fake clock
				g.clock.set(func() { lose(g.clock) })
				g.send(t.Context(), 2, "unknown", to("a", 0))
				if name == "emptied" {
					g.wants(t, "0s busy", "1s unknown", "10s learned")
					return
				}
				g.sendFor(t.Context(), 0, "own", to("a", 0), busy(""))
				g.wants(t, "0s busy", "1s unknown", "10s learned", "10s own")
				g.clock.set(func() {
					g.clock.err = nil
					clear(g.clock.pauses)
				})
				g.sendFor(t.Context(), 0, "again", to("a", 0), busy("")) // the series goes on: 10 s, then 20 s
				g.wg.Wait()
				g.send(t.Context(), 2, "all", to("a", 0))
				g.wants(t, "0s busy", "1s unknown", "10s learned", "10s own", "20s again", "40s all")
			})
		})
	}
}

// TestSharedPauseHostile: a pause from the future, as after the shared clock was set back, counts as none, and
// one that does not end is bounded.
func TestSharedPauseHostile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, test := range map[string]struct {
			pause Pause
			want  time.Duration
		}{
			"from the future": {Pause{Since: 3 * time.Hour, Until: 4 * time.Hour, Row: 1}, 0},
			"without an end":  {Pause{Since: 1, Until: forever, Row: 1 << 62}, time.Minute},
			"without a begin": {Pause{Since: never, Until: never, Row: 255, First: true}, 0},
			"over":            {Pause{Since: 1, Until: 2, Row: -1}, 0},
			"a negative row":  {Pause{Since: 1, Until: 2, Row: -1}, 0},
		} {
			g := newGates(1, Config{CrawlDelay: Obey, BackOff: time.Minute})
			g.clock.pauses["http://shop.example:80 a"] = test.pause
			turn, err := g.pacers[0].Wait(t.Context(), to("a", 0))
			late, isLate := errors.AsType[*TooLate](err)
			if isLate != (test.want > 0) || isLate && late.After != test.want || !isLate && err != nil {
				t.Errorf("%s: %v, %v, want %v", name, turn, err, test.want)
			}
			if turn != nil {
				turn.Done(busy(""))
			}
		}
	})
}

// TestSharedPauseCalls: gates without BackOff ask no clock, others once for each request.
func TestSharedPauseCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, test := range []struct {
			settings Config
			want     int
		}{{usual, 0}, {patient, 3}} {
			g := newGates(1, test.settings)
			for range 3 {
				g.send(t.Context(), 0, "a", to("a", 0))
			}
			g.wg.Wait()
			if g.clock.calls != test.want {
				t.Errorf("%+v: %d calls, want %d", test.settings, g.clock.calls, test.want)
			}
		}
	})
}
